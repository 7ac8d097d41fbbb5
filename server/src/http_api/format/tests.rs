//! Headers and parameters that choose a form.

use tonic::codegen::http::HeaderValue;

use super::*;

fn of(content_type: Option<&'static str>, accept: Option<&'static str>, query: &str) -> (&'static str, &'static str) {
    let mut headers = HeaderMap::new();
    for (name, value) in [(CONTENT_TYPE, content_type), (ACCEPT, accept)] {
        value.map(|value| headers.insert(name, HeaderValue::from_static(value)));
    }
    let (inbound, outbound) = Format::of(&headers, query);
    (inbound.content_type(), outbound.content_type())
}

#[test]
fn the_answer_has_the_form_that_was_asked_for() {
    let plain = "application/json";
    let pretty = "application/json+pretty";
    let in_full = "application/json+no-payload-shorthand";
    let both = "application/json+pretty+no-payload-shorthand";
    for (content_type, accept, query, expected) in [
        (None, None, "", (plain, plain)),
        (Some("text/plain"), Some("*/*"), "query=pretty", (plain, plain)),
        (None, Some(in_full), "", (plain, in_full)),
        (Some("application/json+pretty; charset=utf-8"), None, "", (pretty, pretty)),
        (Some(in_full), Some(pretty), "", (in_full, pretty)),
        (None, Some(in_full), "a=b&pretty", (plain, pretty)),
        (None, None, "noPayloadShorthand=1", (plain, in_full)),
        (None, None, "pretty&noPayloadShorthand", (plain, both)),
    ] {
        assert_eq!(of(content_type, accept, query), expected, "{content_type:?} {accept:?} {query}");
    }
}
