//! JSON format chosen by a client: payloads in short or in full, in one line or indented. Pure.

use tonic::codegen::http::HeaderMap;
use tonic::codegen::http::header::{ACCEPT, CONTENT_TYPE, HeaderName};

use super::shorthand::Payloads;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Format {
    pub(super) payloads: Payloads,
    pub(super) layout: Layout,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    OneLine,
    Indented,
}

/// Formats by media type; any other type is the plain form.
const TYPES: [(&str, Format); 3] = [
    ("application/json+pretty", Format { payloads: Payloads::Short, layout: Layout::Indented }),
    ("application/json+no-payload-shorthand", Format { payloads: Payloads::InFull, layout: Layout::OneLine }),
    ("application/json+pretty+no-payload-shorthand", Format { payloads: Payloads::InFull, layout: Layout::Indented }),
];
pub(super) const PLAIN: (&str, Format) =
    ("application/json", Format { payloads: Payloads::Short, layout: Layout::OneLine });

impl Format {
    /// Formats of a request's body and of its response.
    pub(super) fn of(headers: &HeaderMap, query: &str) -> (Self, Self) {
        let inbound = asked_for(headers, &CONTENT_TYPE).unwrap_or(PLAIN.1);
        let has = |name: &str| query.split('&').any(|pair| pair.split('=').next() == Some(name));
        let (pretty, in_full) = (has("pretty"), has("noPayloadShorthand"));
        if !pretty && !in_full {
            return (inbound, asked_for(headers, &ACCEPT).unwrap_or(inbound));
        }
        let payloads = if in_full { Payloads::InFull } else { Payloads::Short };
        let layout = if pretty { Layout::Indented } else { Layout::OneLine };
        (inbound, Self { payloads, layout })
    }

    pub(super) fn content_type(self) -> &'static str {
        TYPES.iter().find(|(_, format)| *format == self).map_or(PLAIN.0, |(name, _)| name)
    }
}

fn asked_for(headers: &HeaderMap, header: &HeaderName) -> Option<Format> {
    let types = headers.get_all(header).into_iter().filter_map(|value| value.to_str().ok());
    let mut names = types.map(|value| value.split(';').next().unwrap_or_default().trim());
    names.find_map(|name| TYPES.iter().find(|(known, _)| *known == name).map(|(_, format)| *format))
}

#[cfg(test)]
mod tests;
