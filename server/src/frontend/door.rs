//! The door: checks every encoded request of every RPC before it is decoded. It limits the length of each id, name, key
//! and text, the map entries, the depth, and the decoded size in memory; `rules` has the limits and their reasons. So a
//! client's input never decides how much memory is kept, and every accepted request can be read back.

use std::sync::LazyLock;

use cluster::errors::{ServiceError, camel_case};
use proto::codec::{Door, TypeName};
use tonic::Status;

mod rules;
mod scan;
mod tables;

#[cfg(test)]
mod tests;

use scan::{Refusal, Scan};
use tables::Tables;

static DOOR: RequestDoor = RequestDoor { tables: LazyLock::new(Tables::of_descriptors) };

/// Installs the door for every request that this process decodes from now on.
pub(super) fn install() {
    // Built now: the first request would wait for it.
    LazyLock::force(&DOOR.tables);
    proto::codec::install(&DOOR);
}

struct RequestDoor {
    tables: LazyLock<Tables>,
}

impl Door for RequestDoor {
    fn admit(&self, name: TypeName, encoded: &[u8]) -> Result<(), Status> {
        admit(&self.tables, name, encoded).map_err(|error| error.into())
    }

    fn undecodable(&self, name: TypeName) -> Option<Status> {
        self.tables.request(name).map(|_| undecodable(name).into())
    }
}

fn admit(tables: &Tables, name: TypeName, encoded: &[u8]) -> Result<(), ServiceError> {
    // Responses that our own clients decode pass here too, unchecked.
    let Some(table) = tables.request(name) else { return Ok(()) };
    let scanned = Scan::new(tables, rules::DEPTH_MAX).message(table, encoded, 0);
    scanned.map_err(|refusal| refused(tables, name, refusal))
}

fn undecodable((_, name): TypeName) -> ServiceError {
    ServiceError::InvalidArgument(format!("the request is not a valid {name}"))
}

fn refused(tables: &Tables, name: TypeName, refusal: Refusal) -> ServiceError {
    let spelled = |table, field| camel_case(&tables.field_name(table, field).to_ascii_uppercase(), "");
    ServiceError::InvalidArgument(match refusal {
        Refusal::TooLong { table, field, bytes, bytes_max } => {
            format!("{} exceeds maximum allowed length ({bytes}/{bytes_max})", spelled(table, field))
        }
        Refusal::TooManyEntries { table, field } => {
            format!("{} has more than {} entries", spelled(table, field), rules::MAP_ENTRIES_MAX)
        }
        Refusal::TooDeep => format!("the request has messages nested more than {} levels deep", rules::DEPTH_MAX),
        Refusal::TooLarge => format!("the request takes more than {} bytes in memory", rules::DECODED_BYTES_MAX),
        Refusal::TooMuchUnknown => {
            format!("the request has more than {} bytes in fields unknown to this server", rules::UNKNOWN_BYTES_MAX)
        }
        Refusal::Malformed | Refusal::NotAnEntry => return undecodable(name),
    })
}
