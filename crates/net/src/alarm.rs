//! Precise wake-ups: a kernel timer where there is one, else the timeout of the poll.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod timerfd {
    use std::io;
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::time::Duration;

    use mio::unix::SourceFd;
    use mio::{Interest, Registry, Token};
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };

    /// A timer descriptor in the loop's poll. It is edge-triggered and therefore never read:
    /// setting it again clears its count, and each expiry is a new edge.
    pub(crate) struct TimerfdAlarm {
        timer: OwnedFd,
        /// When it expires; `u64::MAX` when it is not set.
        armed_ns: u64,
    }

    impl TimerfdAlarm {
        pub(crate) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            registry.register(&mut SourceFd(&timer.as_raw_fd()), token, Interest::READABLE)?;
            Ok(Self { timer, armed_ns: u64::MAX })
        }

        /// The alarm's event was reported.
        pub(crate) fn expired(&mut self) {
            self.armed_ns = u64::MAX;
        }

        /// Makes the poll return at `deadline_ns` or before, and returns the timeout for it. An
        /// alarm that is set to an earlier time is left so: one early wake-up costs less than
        /// setting the timer in every turn.
        pub(crate) fn set(
            &mut self,
            deadline_ns: u64,
            _now_ns: u64,
        ) -> io::Result<Option<Duration>> {
            if deadline_ns < self.armed_ns {
                let at_ns = crate::clock::on_machine_ns(deadline_ns);
                let at = Timespec {
                    tv_sec: (at_ns / 1_000_000_000) as i64,
                    tv_nsec: (at_ns % 1_000_000_000) as _,
                };
                let once = Timespec { tv_sec: 0, tv_nsec: 0 };
                let value = Itimerspec { it_interval: once, it_value: at };
                timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &value)?;
                self.armed_ns = deadline_ns;
            }
            Ok(None)
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod timeout {
    use std::io;
    use std::time::Duration;

    use mio::{Registry, Token};

    /// The poll's own timeout.
    pub(crate) struct TimeoutAlarm;

    impl TimeoutAlarm {
        pub(crate) fn new(_registry: &Registry, _token: Token) -> io::Result<Self> {
            Ok(Self)
        }

        pub(crate) fn expired(&mut self) {}

        pub(crate) fn set(
            &mut self,
            deadline_ns: u64,
            now_ns: u64,
        ) -> io::Result<Option<Duration>> {
            if deadline_ns == u64::MAX {
                return Ok(None);
            }
            Ok(Some(Duration::from_nanos(deadline_ns.saturating_sub(now_ns))))
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) use timeout::TimeoutAlarm as Alarm;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use timerfd::TimerfdAlarm as Alarm;
