// The course of a run or of a step, as its events tell it.

import { useEffect, useRef, useState } from "preact/hooks";

import { Course, follow } from "../../course";

export type Trouble = "gone" | "reconnecting" | "displaced" | null;

export interface CourseState {
  course: Course;
  // Another number: something has happened.
  news: number;
  trouble: Trouble;
  // It had ended before it was watched.
  isPast: boolean;
}

export function useCourse(address: string, ended: () => void): CourseState {
  const course = useRef<Course>(new Course());
  const [trouble, setTrouble] = useState<Trouble>(null);
  // Counts what has been drawn: each event asks for one more drawing at the next frame.
  const [, setTurn] = useState(0);
  const pending = useRef(0);
  // Counts events: charts are drawn only when there were some.
  const news = useRef(0);
  const isPast = useRef(false);
  const latest = useRef(ended);
  latest.current = ended;

  useEffect(() => {
    const draw = () => {
      if (pending.current !== 0) return;
      pending.current = requestAnimationFrame(() => {
        pending.current = 0;
        setTurn((turn) => turn + 1);
      });
    };
    const stop = follow(address, {
      began: (begun) => {
        course.current = begun;
        isPast.current = begun.end !== null;
        news.current += 1;
        setTrouble(null);
        draw();
      },
      changed: (kind) => {
        news.current += 1;
        draw();
        if (kind === "end") latest.current();
      },
      ready: draw,
      displaced: () => setTrouble("displaced"),
      lost: (forGood) => setTrouble(forGood ? "gone" : "reconnecting"),
    });
    // The progress of a phase moves between events, too.
    const timer = setInterval(() => {
      if (course.current.end === null) draw();
    }, 500);
    return () => {
      stop();
      clearInterval(timer);
      cancelAnimationFrame(pending.current);
      pending.current = 0;
    };
  }, [address]);

  return { course: course.current, news: news.current, trouble, isPast: isPast.current };
}
