//! A connection that gives way or ends at its deadline while it waits for its peer.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep_until};

use crate::places::{Place, Wait};

/// A connection with its place.
pub(crate) struct HttpConnection<S> {
    stream: S,
    place: Place,
    /// Polled only while a deadline applies.
    alarm: Pin<Box<Sleep>>,
}

impl<S> HttpConnection<S> {
    pub(crate) fn new(stream: S, place: Place) -> Self {
        let alarm = Box::pin(sleep_until(tokio::time::Instant::now()));
        Self { stream, place, alarm }
    }

    pub(crate) const fn place(&self) -> &Place {
        &self.place
    }

    /// Ends a pending operation when its time is over.
    fn check<T>(
        &mut self,
        context: &mut Context<'_>,
        result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if result.is_ready() {
            return result;
        }
        let deadline = match self.place.wait(context.waker()) {
            Wait::GiveWay => return Poll::Ready(Err(given_way())),
            Wait::Until(None) => return Poll::Pending,
            Wait::Until(Some(deadline)) => deadline.into(),
        };
        if self.alarm.deadline() != deadline {
            self.alarm.as_mut().reset(deadline);
        }
        if self.alarm.as_mut().poll(context).is_ready() {
            self.place.timed_out();
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Poll::Pending
    }
}

impl<S> Drop for HttpConnection<S> {
    fn drop(&mut self) {
        self.place.leave();
    }
}

fn given_way() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "it gave way to another connection")
}

impl<S: AsyncRead + Unpin> AsyncRead for HttpConnection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.place.gives_way() {
            return Poll::Ready(Err(given_way()));
        }
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        let got = buffer.filled().len() - before;
        if got > 0 && !self.place.received(got, Instant::now()) {
            let why = "the request is too long";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, why)));
        }
        self.check(context, result)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HttpConnection<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.place.wrote(result.is_pending(), Instant::now());
        self.check(context, result)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
