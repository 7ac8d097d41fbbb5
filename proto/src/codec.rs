//! The codec of the generated services: prost's, with a door that sees every encoded request before it is decoded. What may
//! pass is the server's to say; a process without a door (a client) decodes as prost does.

use std::marker::PhantomData;
use std::sync::OnceLock;

use bytes::Buf as _;
use prost::{Message, Name};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic_prost::ProstEncoder;

/// Names a message type: its package and its name in it.
pub type TypeName = (&'static str, &'static str);

/// Decides over encoded messages. Types that it does not know pass.
pub trait Door: Send + Sync {
    /// Called with the bytes of one message, before anything is allocated for it.
    fn admit(&self, name: TypeName, encoded: &[u8]) -> Result<(), Status>;

    /// What the caller gets for bytes that are no such message; `None` for types that it does not know.
    fn undecodable(&self, name: TypeName) -> Option<Status>;
}

static DOOR: OnceLock<&'static dyn Door> = OnceLock::new();

/// From here on every message that this process decodes passes the door. The first door stays.
pub fn install(door: &'static dyn Door) {
    let _ = DOOR.set(door);
}

/// Generated clients and servers make one for each call.
#[derive(Debug, Clone)]
pub struct CheckedCodec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for CheckedCodec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for CheckedCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Name + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = CheckedDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::default()
    }

    fn decoder(&mut self) -> Self::Decoder {
        CheckedDecoder(PhantomData)
    }
}

#[derive(Debug, Clone)]
pub struct CheckedDecoder<U>(PhantomData<U>);

impl<U: Message + Name + Default> Decoder for CheckedDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        const { assert!(!U::NAME.is_empty()) };
        let name = (U::PACKAGE, U::NAME);
        let door = DOOR.get();
        if let Some(door) = door {
            // The buffer behind it is in one piece.
            assert_eq!(buffer.chunk().len(), buffer.remaining(), "a message is one chunk");
            door.admit(name, buffer.chunk())?;
        }
        U::decode(buffer).map(Some).map_err(|error| {
            let refused = door.and_then(|door| door.undecodable(name));
            refused.unwrap_or_else(|| Status::internal(error.to_string()))
        })
    }
}
