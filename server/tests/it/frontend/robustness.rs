//! Whatever bytes come in, an answer goes out, and the server goes on.

use bytes::{Buf, BufMut, Bytes};
use prost::Message as _;
use prost_types::FileDescriptorSet;
use proto::temporal::api::workflowservice::v1::GetSystemInfoRequest;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use crate::given::{a_node, within};

/// Bytes as they are.
#[derive(Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self::Encoder {
        Self
    }

    fn decoder(&mut self) -> Self::Decoder {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}

/// Every RPC of the public services.
fn all_methods() -> Vec<String> {
    let files = FileDescriptorSet::decode(proto::DESCRIPTORS).expect("our own descriptors").file;
    let services = files.iter().filter(|file| file.package().starts_with("temporal.api.")).flat_map(|file| {
        file.service.iter().map(move |service| (format!("{}.{}", file.package(), service.name()), &service.method))
    });
    services
        .flat_map(|(service, methods)| methods.iter().map(move |method| format!("/{service}/{}", method.name())))
        .collect()
}

async fn send(channel: &Channel, method: &str, body: Bytes) -> Result<(), Status> {
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.map_err(|error| Status::unknown(error.to_string()))?;
    let path: PathAndQuery = method.parse().expect("a path");
    let request: Request<Bytes> = within(std::time::Duration::from_secs(20), body);
    grpc.unary(request, path, Raw).await.map(|_| ())
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_to_any_rpc_gets_a_proper_answer() {
    let given = a_node().await;
    let methods = all_methods();
    assert!(methods.len() > 100, "{}", methods.len());
    let seed = 20_261_116;
    let mut random = SmallRng::seed_from_u64(seed);
    for method in &methods {
        let mut bodies = vec![Bytes::new(), Bytes::from(vec![0xff; 40]), Bytes::from_static(b"\x0a\x05ab")];
        // A string field that is not UTF-8, as the first field of most requests is.
        bodies.push(Bytes::from_static(b"\x0a\x02\xc3\x28"));
        bodies.extend((0..8).map(|_| {
            let length = random.random_range(1..200);
            (0..length).map(|_| random.random::<u8>()).collect::<Bytes>()
        }));
        for body in bodies {
            let Err(status) = send(&given.channel, method, body.clone()).await else { continue };
            let expected = [Code::InvalidArgument, Code::Unimplemented, Code::NotFound];
            assert!(expected.contains(&status.code()), "{method} {body:?} (seed {seed}): {status:?}");
            assert!(!status.message().contains("something went wrong"), "{method} {body:?} (seed {seed}): {status:?}");
        }
    }
    given.client().get_system_info(GetSystemInfoRequest {}).await.unwrap();
    given.stop().await;
}
