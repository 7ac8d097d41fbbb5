//! Completion callbacks of a start.

use cluster::errors::ServiceError;
use proto::temporal::api::common::v1::Callback;
use proto::temporal::api::common::v1::callback::{Nexus, Variant};

use super::invalid;

const CALLBACKS_MAX: usize = 32;
const URL_BYTES_MAX: usize = 1000;
const HEADER_BYTES_MAX: usize = 8 << 10;

/// The server's own addresses, which need no host.
const SYSTEM_URLS: [&str; 2] = ["temporal://system", "temporal://internal"];

/// Checks callbacks, and lower-cases their header names.
pub(crate) fn check(callbacks: &mut [Callback]) -> Result<(), ServiceError> {
    if callbacks.len() > CALLBACKS_MAX {
        return Err(invalid(format!("cannot attach more than {CALLBACKS_MAX} callbacks to an execution")));
    }
    for callback in callbacks {
        match &mut callback.variant {
            Some(Variant::Nexus(nexus)) => check_nexus(nexus)?,
            Some(Variant::Internal(_)) => {}
            Some(Variant::NexusHandler(_)) => {
                return Err(ServiceError::Unimplemented(
                    "unknown callback variant: *common.Callback_NexusHandler_".into(),
                ));
            }
            None => return Err(ServiceError::Unimplemented("unknown callback variant: <nil>".into())),
        }
    }
    Ok(())
}

fn check_nexus(nexus: &mut Nexus) -> Result<(), ServiceError> {
    if nexus.url.len() > URL_BYTES_MAX {
        return Err(invalid(format!("invalid url: url length longer than max length allowed of {URL_BYTES_MAX}")));
    }
    check_url(&nexus.url)?;
    let size: usize = nexus.header.iter().map(|(name, value)| name.len() + value.len()).sum();
    if size > HEADER_BYTES_MAX {
        let message = format!("invalid header: header size longer than max allowed size of {HEADER_BYTES_MAX}");
        return Err(invalid(message));
    }
    nexus.header = nexus.header.drain().map(|(name, value)| (name.to_lowercase(), value)).collect();
    Ok(())
}

fn check_url(url: &str) -> Result<(), ServiceError> {
    if SYSTEM_URLS.contains(&url) {
        return Ok(());
    }
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let rest = rest.ok_or_else(|| invalid(format!("invalid url: unknown scheme: {url}")))?;
    if rest.is_empty() || rest.starts_with(['/', '?', '#']) {
        return Err(invalid("invalid url: missing host"));
    }
    Ok(())
}
