//! How metrics are spelt. The process counts for all tests together: each uses names of its own.

use std::time::Duration;

use super::*;

fn lines<L: Labels>(family: &Family<L>) -> Vec<String> {
    let mut text = String::new();
    family.write(&mut text);
    text.lines().map(ToOwned::to_owned).collect()
}

#[test]
fn a_counter_is_told_with_its_help_and_its_labels() {
    let counter: Family<Operation> = Family::counter("some_requests", "What it is.");
    assert_eq!(lines(&counter), ["# HELP some_requests What it is.", "# TYPE some_requests counter"]);
    counter.add(Operation("B"), 1);
    counter.add(Operation("A"), 2);
    counter.add(Operation("B"), 3);
    let told = lines(&counter);
    assert_eq!(told[2], "some_requests{operation=\"A\",service_name=\"frontend\"} 2");
    assert_eq!(told[3], "some_requests{operation=\"B\",service_name=\"frontend\"} 4");
}

#[test]
fn a_histogram_counts_each_span_in_all_buckets_from_its_own() {
    let spans: Family<Limit> = Family::histogram("some_latency", "Seconds.");
    for ms in [1, 2, 3, 40, 2_000_000] {
        spans.observe(Limit::BlobSize, Duration::from_millis(ms));
    }
    let told = lines(&spans);
    let labels = "limit=\"blob_size\",service_name=\"history\"";
    let expected = [("0.001", 1), ("0.002", 2), ("0.005", 3), ("0.02", 3), ("0.05", 4), ("1000", 4), ("+Inf", 5)];
    for (end, count) in expected {
        let line = format!("some_latency_bucket{{{labels},le=\"{end}\"}} {count}");
        assert!(told.contains(&line), "{line} in {told:#?}");
    }
    assert_eq!(told.len(), 2 + 20 + 2);
    assert!(told.contains(&format!("some_latency_sum{{{labels}}} 2000.046")), "{told:#?}");
    assert!(told.contains(&format!("some_latency_count{{{labels}}} 5")), "{told:#?}");
}

#[test]
fn a_call_is_counted_from_its_beginning_to_its_end() {
    let call = CallUnderWay::begin("TestedCall");
    let count = |name: &str| {
        let told = text();
        let line = told.lines().find(|line| line.starts_with(name) && line.contains("\"TestedCall\""));
        line.and_then(|line| line.rsplit(' ').next()).map(str::to_owned)
    };
    let (one, none) = (Some("1".to_owned()), Some("0".to_owned()));
    assert_eq!((count("service_requests"), count("service_pending_requests")), (one.clone(), one.clone()));
    call.failed(&ServiceError::NotFound("gone".into()));
    assert_eq!(count("service_errors{"), None, "that is the caller's own doing");
    call.failed(&ServiceError::Internal("broken".into()));
    assert_eq!(count("service_errors{"), one);
    call.failed(&ServiceError::ResourceExhausted {
        cause: ResourceExhaustedCause::ConcurrentLimit,
        scope: ResourceExhaustedScope::Namespace,
        message: String::new(),
    });
    assert_eq!(count("service_errors{"), one);
    drop(call);
    assert_eq!((count("service_pending_requests"), count("service_latency_count")), (none, one));
    for told in [
        "service_error_with_type{error_type=\"serviceerror_NotFound\",operation=\"TestedCall\",service_name=\"frontend\"} 1",
        "service_errors_resource_exhausted{resource_exhausted_cause=\"ConcurrentLimit\",\
         resource_exhausted_scope=\"Namespace\",operation=\"TestedCall\",service_name=\"frontend\"} 1",
    ] {
        assert!(text().lines().any(|line| line == told), "{told}");
    }
}

#[test]
fn only_reads_of_the_metrics_are_answered_with_them() {
    let cases = [
        ("GET /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK"),
        ("GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK"),
        ("GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 404 Not Found"),
        ("POST /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 405 Method Not Allowed"),
        ("", "HTTP/1.1 405 Method Not Allowed"),
    ];
    for (head, expected) in cases {
        let response = endpoint::respond(head.as_bytes());
        assert_eq!(response.lines().next(), Some(expected), "{head:?}");
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())));
        assert_eq!(body.starts_with("# HELP service_requests"), expected.ends_with("OK"));
    }
}
