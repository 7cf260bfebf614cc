// The width of the window.

import { useEffect, useState } from "preact/hooks";

export function useWidth(): number {
  const [width, setWidth] = useState(innerWidth);
  useEffect(() => {
    const update = () => setWidth(innerWidth);
    addEventListener("resize", update);
    return () => removeEventListener("resize", update);
  }, []);
  return width;
}
