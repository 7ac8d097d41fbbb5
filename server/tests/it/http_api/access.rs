//! Web pages of other origins, and names that lead here: neither can do anything.

use serde_json::json;

use super::*;

const JSON: &str = "Content-Type: application/json\r\n";

async fn runs(http: &Http) -> Value {
    http.get(WORKFLOW).await.json()["code"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_origin_can_start_nothing() {
    let (given, http) = given().await;
    let body = json!({ "workflowType": { "name": "t" }, "taskQueue": { "name": "w" } }).to_string();
    let attempts = [
        ("Content-Type: text/plain\r\n", 415),
        ("Content-Type: application/x-www-form-urlencoded\r\n", 415),
        ("", 415),
        ("Origin: http://attacker.example\r\nContent-Type: text/plain\r\n", 403),
        ("Origin: http://attacker.example\r\nContent-Type: application/json\r\n", 403),
        ("Origin: null\r\nContent-Type: application/json\r\n", 403),
    ];
    for (headers, status) in attempts {
        let answer = http.send("POST", WORKFLOW, headers, &body).await;
        assert_eq!(answer.status, status, "{headers}: {}", answer.body);
        assert_eq!(runs(&http).await, 5, "{headers}: nothing was started");
    }
    let preflight = "Origin: http://attacker.example\r\nAccess-Control-Request-Method: POST\r\n";
    assert_eq!(http.send("OPTIONS", WORKFLOW, preflight, "").await.status, 403);
    let own = format!("Origin: http://localhost\r\n{JSON}");
    assert_eq!(http.send("POST", WORKFLOW, &own, &body).await.ok()["started"], true);
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_was_led_here_reads_nothing() {
    let (given, http) = given().await;
    let path = "/api/v1/namespaces";
    for (host, status) in [("attacker.example", 403), ("127.0.0.1:7243", 200), ("localhost:7243", 200)] {
        let answer = http.send_as(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n"), "").await;
        assert_eq!(answer.status, status, "{host}: {}", answer.body);
    }
    let denied = http.send_as("GET /openapi.yaml HTTP/1.1\r\nHost: attacker.example\r\n", "").await;
    assert_eq!(denied.json(), json!({ "code": 7, "message": "Host not allowed" }));
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_configured_is_let_in() {
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let mut config = config(&directory);
    config.http.address = Some("127.0.0.1:0".parse().expect("an address"));
    config.http.allowed_hosts = vec!["api.example.com".into()];
    config.http.allowed_origins = vec!["https://console.example.com".into()];
    let node = Node::start(config, Env::system()).await.expect("the node starts");
    let http = Http { address: node.http_address().expect("it serves HTTP") };
    let head = "OPTIONS /api/v1/namespaces HTTP/1.1\r\nHost: api.example.com\r\n\
                Origin: https://console.example.com\r\nAccess-Control-Request-Method: GET\r\n";
    assert_eq!(http.send_as(head, "").await.status, 204);
    let head = "GET /api/v1/namespaces HTTP/1.1\r\nHost: api.example.com\r\nOrigin: https://console.example.com\r\n";
    assert_eq!(http.send_as(head, "").await.status, 200);
    node.shutdown().await;
}
