//! The bodies of requests and responses in transit, charged while they are in memory.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Buf, Bytes};
use cluster::errors::ServiceError;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::Sleep;
use tonic::Status;
use tonic::codegen::http::HeaderMap;

use super::ledger::{AnswerCharge, CallCharge, Full};

/// From the first wait for a request's body to its end. 4 MiB arrive in this time at 1.7 Mbit/s.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(20);

/// A request's body. It ends with an error if it does not arrive in time, or if there is no room for it.
pub(super) struct Upload {
    body: Incoming,
    charge: Arc<CallCharge>,
    /// Set at the first wait: most bodies arrive with their head.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Upload {
    pub(super) fn new(body: Incoming, charge: Arc<CallCharge>) -> Self {
        if body.is_end_stream() {
            charge.arrived();
        }
        Self { body, charge, deadline: None }
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let upload = &mut *self;
        match Pin::new(&mut upload.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                if let Err(full) = upload.charge.received(bytes) {
                    return Poll::Ready(Some(Err(refusal(full.into()))));
                }
                if upload.body.is_end_stream() {
                    upload.charge.arrived();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(error.into()))),
            Poll::Ready(None) => {
                upload.charge.arrived();
                Poll::Ready(None)
            }
            Poll::Pending => {
                let deadline = upload.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(UPLOAD_TIMEOUT)));
                std::task::ready!(deadline.as_mut().poll(context));
                let seconds = UPLOAD_TIMEOUT.as_secs();
                let late = ServiceError::DeadlineExceeded(format!("the request did not arrive within {seconds} s"));
                Poll::Ready(Some(Err(refusal(late))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.charge.arrived();
    }
}

/// Result of polling a body: a frame, an error, or its end.
type Part<E> = Option<Result<Frame<Outgoing>, E>>;

/// A response's body; an error if there is no room for it.
pub(super) struct Answer<B: Body> {
    body: B,
    /// The first part, once it is encoded and charged; `Pending` if there is none, or if it has been sent.
    first: Poll<Part<B::Error>>,
    /// Charge of an admitted call, kept until the response is sent.
    charge: Option<Arc<CallCharge>>,
}

impl<B: Body<Data = Bytes> + Unpin> Answer<B> {
    /// A refusal is small, and is sent even if there is no room.
    pub(super) fn uncharged(body: B) -> Self {
        Self { body, first: Poll::Pending, charge: None }
    }

    /// Encodes and charges the first part: the whole message of a unary call. HTTP/2 polls it only when the client's
    /// window is open, and until then the handler's message would be in memory without a charge.
    ///
    /// # Errors
    /// There is no room for the first part.
    pub(super) fn charged(body: B, charge: Arc<CallCharge>) -> Result<Self, Full> {
        let mut answer = Self { body, first: Poll::Pending, charge: Some(charge) };
        // A stream that has nothing to send yet is polled again by its connection, with a waker.
        let first = answer.next(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(first) = first {
            answer.first = Poll::Ready(first?);
        }
        Ok(answer)
    }

    /// The next part of the body, charged.
    fn next(&mut self, context: &mut Context<'_>) -> Poll<Result<Part<B::Error>, Full>> {
        let frame = match std::task::ready!(Pin::new(&mut self.body).poll_frame(context)) {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Poll::Ready(Ok(Some(Err(error)))),
            None => return Poll::Ready(Ok(None)),
        };
        let bytes = match frame.into_data() {
            Ok(bytes) => bytes,
            Err(trailers) => {
                let trailers = trailers.into_trailers().ok().map(|trailers| Ok(Frame::trailers(trailers)));
                return Poll::Ready(Ok(trailers));
            }
        };
        let charge = self.charge.as_ref().map_or(Ok(None), |charge| charge.send(bytes.len()))?;
        Poll::Ready(Ok(Some(Ok(Frame::data(Outgoing { bytes, _charge: charge })))))
    }

    fn unsent_bytes(&self) -> u64 {
        match &self.first {
            Poll::Ready(Some(Ok(frame))) => frame.data_ref().map_or(0, |part| part.remaining() as u64),
            Poll::Ready(Some(Err(_)) | None) | Poll::Pending => 0,
        }
    }
}

impl<B: Body<Data = Bytes, Error: Unpin> + Unpin> Body for Answer<B> {
    type Data = Outgoing;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Part<B::Error>> {
        let answer = &mut *self;
        if let first @ Poll::Ready(_) = std::mem::replace(&mut answer.first, Poll::Pending) {
            return first;
        }
        if let Some(charge) = &answer.charge {
            // The next part is polled when the last one has been taken.
            charge.arrived();
        }
        Poll::Ready(match std::task::ready!(answer.next(context)) {
            Ok(part) => part,
            Err(full) => Some(Ok(Frame::trailers(trailers(&ServiceError::from(full).into())))),
        })
    }

    fn is_end_stream(&self) -> bool {
        // The head of an error ends its stream: clients treat a frame of data without trailers as a broken connection.
        match &self.first {
            Poll::Pending => self.body.is_end_stream(),
            Poll::Ready(None) => true,
            Poll::Ready(Some(_)) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, unsent) = (self.body.size_hint(), self.unsent_bytes());
        let mut size = SizeHint::new();
        size.set_lower(rest.lower() + unsent);
        if let Some(upper) = rest.upper() {
            size.set_upper(upper + unsent);
        }
        size
    }
}

/// The gRPC library and the gateway recover the status from it.
fn refusal(error: ServiceError) -> Box<dyn std::error::Error + Send + Sync> {
    let status: Status = error.into();
    status.into()
}

fn trailers(status: &Status) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    // Invalid headers are left out: the code is always there.
    let _ = status.add_header(&mut trailers);
    trailers
}

/// A part of a response, until the socket has taken all of it.
pub(super) struct Outgoing {
    bytes: Bytes,
    _charge: Option<AnswerCharge>,
}

impl Buf for Outgoing {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
    }

    fn copy_to_bytes(&mut self, count: usize) -> Bytes {
        self.bytes.copy_to_bytes(count)
    }
}
