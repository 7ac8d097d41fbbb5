//! Admitted requests.

use tonic::codegen::http::Request;

use super::*;

fn access() -> Access {
    Access::new(&HttpConfig {
        address: None,
        allowed_hosts: vec!["API.example.com".into()],
        allowed_origins: vec!["https://console.example.com/".into()],
    })
}

fn check(access: &Access, verb: &str, headers: &[(&str, &str)]) -> Result<Admission, Denied> {
    let mut request = Request::builder().method(verb).uri("/api/v1/namespaces");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let has_body = headers.iter().any(|(name, value)| *name == "content-length" && *value != "0");
    access.check(&request.body(()).unwrap().into_parts().0, has_body)
}

#[test]
fn the_host_is_an_address_or_a_known_name() {
    let cases = [
        ("localhost", true),
        ("LocalHost:7243", true),
        ("ui.localhost:7243", true),
        ("127.0.0.1:7243", true),
        ("[::1]:7243", true),
        ("10.1.2.3", true),
        ("api.example.com", true),
        ("api.example.com:443", true),
        ("attacker.example", false),
        ("localhost.attacker.example", false),
        ("127.0.0.1.attacker.example:7243", false),
        ("api.example.com.attacker.example", false),
        ("", false),
        ("a b", false),
    ];
    for (host, is_allowed) in cases {
        let expected = if is_allowed { Ok(Admission::Granted) } else { Err(Denied::Host) };
        assert_eq!(check(&access(), "GET", &[("host", host)]), expected, "{host}");
    }
    assert_eq!(check(&access(), "GET", &[]), Ok(Admission::Granted), "HTTP/1.0 has none");
}

#[test]
fn the_host_of_http2_is_in_the_address() {
    let request = |uri: &str| Request::builder().uri(uri).body(()).unwrap().into_parts().0;
    assert_eq!(access().check(&request("http://localhost:7243/x"), false), Ok(Admission::Granted));
    assert_eq!(access().check(&request("http://attacker.example/x"), false), Err(Denied::Host));
}

#[test]
fn a_page_is_of_this_host_or_a_known_origin() {
    let json = ("content-type", "application/json");
    let post = |origin| check(&access(), "POST", &[("host", "localhost:7243"), ("origin", origin), json]);
    assert_eq!(post("http://localhost:7243"), Ok(Admission::Granted));
    let known = "https://console.example.com";
    assert_eq!(post(known), Ok(Admission::ToOrigin(HeaderValue::from_static(known))));
    for origin in ["null", "http://attacker.example", "http://localhost:3000", "https://console.example.com:8443", ""] {
        assert_eq!(post(origin), Err(Denied::Origin), "{origin}");
    }
    let any = Access::new(&HttpConfig { allowed_origins: vec!["*".into()], ..HttpConfig::default() });
    let from = |origin| check(&any, "GET", &[("host", "localhost"), ("origin", origin)]);
    assert!(matches!(from("http://attacker.example"), Ok(Admission::ToOrigin(_))));
}

#[test]
fn what_writes_is_json() {
    type Headers = &'static [(&'static str, &'static str)];
    let cases: [(&str, Headers, bool); 10] = [
        ("POST", &[("content-length", "2"), ("content-type", "application/json")], true),
        ("POST", &[("content-length", "2"), ("content-type", "Application/JSON; charset=utf-8")], true),
        ("POST", &[("content-length", "2"), ("content-type", "application/json+no-payload-shorthand")], true),
        ("POST", &[("content-length", "0")], true),
        ("DELETE", &[], true),
        ("GET", &[("content-type", "text/plain")], true),
        ("POST", &[("content-length", "2"), ("content-type", "text/plain")], false),
        ("PUT", &[("content-length", "2"), ("content-type", "application/x-www-form-urlencoded")], false),
        ("POST", &[("content-length", "2")], false),
        ("POST", &[("content-length", "2"), ("content-type", "multipart/form-data; boundary=x")], false),
    ];
    for (verb, headers, is_allowed) in cases {
        let expected = if is_allowed { Ok(Admission::Granted) } else { Err(Denied::NotJson) };
        assert_eq!(check(&access(), verb, headers), expected, "{verb} {headers:?}");
    }
    let two = [("content-length", "2"), ("content-type", "application/json"), ("content-type", "text/plain")];
    assert_eq!(check(&access(), "POST", &two), Err(Denied::NotJson));
}
