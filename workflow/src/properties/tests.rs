//! The size of a memo after a merge.

use std::collections::HashMap;

use bytes::Bytes;
use prost::Message as _;
use proto::temporal::api::common::v1::{Memo, Payload};

use super::{merge, merged_size};

fn payload(data: &str) -> Payload {
    Payload { data: Bytes::copy_from_slice(data.as_bytes()), ..Payload::default() }
}

#[test]
fn the_size_after_a_merge_is_that_of_what_is_merged() {
    let long = "x".repeat(200);
    let upserts = [
        vec![("a", payload("1")), ("", payload("22"))],
        vec![("a", payload(&long)), ("b", payload("null"))],
        vec![(long.as_str(), payload("3")), ("a", payload("null")), ("", payload(""))],
        vec![("c", payload("4")), ("c2", payload(&long.repeat(100)))],
        vec![("c2", payload("[]")), (long.as_str(), payload("5"))],
    ];
    let mut memo = Memo::default();
    let mut size = 0;
    for upsert in upserts {
        let upsert: HashMap<String, Payload> =
            upsert.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        size = merged_size(size, &memo.fields, &upsert);
        merge(&mut memo.fields, &upsert);
        assert_eq!(size, memo.encoded_len());
    }
}
