//! What comes out of a guarded service.

use tonic::{Code, Status};

use super::*;

#[derive(Clone)]
struct Answers(fn() -> http::Response<Body>);

impl Service<http::Request<Body>> for Answers {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Request<Body>) -> Self::Future {
        let answer = self.0;
        Box::pin(async move { Ok(answer()) })
    }
}

async fn guarded(answer: fn() -> http::Response<Body>) -> http::Response<Body> {
    let request = http::Request::builder().uri("/package.Service/DoIt").body(Body::default()).unwrap();
    let (_store, up) = watch::channel(Availability::Up);
    match Guarded::new(Answers(answer), up).call(request).await {
        Ok(response) => response,
    }
}

async fn status(answer: fn() -> http::Response<Body>) -> (Code, String) {
    let status = Status::from_header_map(guarded(answer).await.headers()).unwrap();
    (status.code(), status.message().to_owned())
}

#[tokio::test]
async fn a_panic_is_an_internal_error() {
    let answer = status(|| panic!("a bug")).await;
    assert_eq!(answer, (Code::Internal, "something went wrong, please retry".into()));
}

#[tokio::test]
async fn the_librarys_answers_are_put_in_known_words() {
    let answer = status(|| Status::unimplemented("Not yet implemented").into_http()).await;
    assert_eq!(answer, (Code::Unimplemented, "DoIt is not built yet".into()));
    let answer = status(|| {
        let message = "Error, decoded message length too large: found 5 bytes, the limit is: 4 bytes";
        Status::out_of_range(message).into_http()
    });
    assert_eq!(answer.await, (Code::ResourceExhausted, "grpc: received message larger than max (5 vs. 4)".into()));
    let answer = status(|| {
        let message = "Error decompressing: size limit, of 4 bytes, exceeded while decompressing message";
        Status::resource_exhausted(message).into_http()
    });
    let expected = "grpc: received message after decompression larger than max 4";
    assert_eq!(answer.await, (Code::ResourceExhausted, expected.into()));
}

#[tokio::test]
async fn other_answers_stand() {
    let answer = status(|| Status::unimplemented("by us").into_http()).await;
    assert_eq!(answer, (Code::Unimplemented, "by us".into()));
    assert!(guarded(|| http::Response::new(Body::default())).await.headers().is_empty());
}

#[derive(Clone)]
struct NeverAnswers;

impl Service<http::Request<Body>> for NeverAnswers {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Request<Body>) -> Self::Future {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_call_under_way_fails_when_the_store_goes_down() {
    let (store, up) = watch::channel(Availability::Up);
    let request = http::Request::builder().uri("/package.Service/DoIt").body(Body::default()).unwrap();
    let mut call = Guarded::new(NeverAnswers, up).call(request);
    assert!((&mut call).now_or_never().is_none());
    store.send_replace(Availability::Down("the disk is full"));
    let Ok(response) = call.await;
    let status = Status::from_header_map(response.headers()).unwrap();
    assert_eq!(status.code(), Code::Unavailable);
    assert!(status.message().contains("the disk is full"), "{}", status.message());
}
