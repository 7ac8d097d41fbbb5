//! Refusals: the codes of HTTP and gRPC, and the typed details.

use super::*;

#[track_caller]
fn refused(answer: &Answer, status: u16, expected: &Value) {
    assert_eq!((answer.status, &answer.json()), (status, expected));
    assert_eq!(answer.content_type, "application/json");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_has_the_details_that_grpc_has() {
    let (given, http) = given().await;
    let detail = "type.googleapis.com/temporal.api.errordetails.v1.";
    let expected = json!({
        "code": 5,
        "message": "Namespace nope is not found.",
        "details": [{ "@type": format!("{detail}NamespaceNotFoundFailure"), "namespace": "nope" }],
    });
    refused(&http.get("/api/v1/namespaces/nope").await, 404, &expected);

    let run_id = start(&http).await;
    let again = json!({ "workflowType": { "name": "t" }, "taskQueue": { "name": "w" } });
    let answer = http.post(WORKFLOW, &again).await;
    assert_eq!(answer.status, 409);
    let failure = &answer.json()["details"][0];
    assert_eq!(failure["@type"], format!("{detail}WorkflowExecutionAlreadyStartedFailure"));
    assert_eq!(failure["runId"], run_id);

    let answer = http.post("/api/v1/namespaces/default/workflows/other/cancel", &json!({})).await;
    assert_eq!((answer.status, &answer.json()["code"]), (404, &json!(5)));
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_without_a_route_are_distinguished() {
    let (given, http) = given().await;
    let nothing = json!({ "code": 5, "message": "Not Found" });
    for path in ["/", "/nothing", "/api/v1/namespaces/default/workflows/w/", "/api/v1/namespaces/%FF"] {
        refused(&http.get(path).await, 404, &nothing);
    }
    let other_verb = json!({ "code": 12, "message": "Method Not Allowed" });
    refused(&http.send("PUT", "/system-info", "", "").await, 501, &other_verb);
    refused(&http.send("DELETE", WORKFLOW, "", "").await, 501, &other_verb);
    let not_built = http.get("/api/v1/namespaces/default/workers/describe/x").await;
    assert_eq!((not_built.status, &not_built.json()["code"]), (501, &json!(12)));
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_cannot_be_read_is_refused() {
    let (given, http) = given().await;
    let deep = format!("{{\"input\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let long = format!("{{\"identity\":\"{}\"}}", "x".repeat(5 << 20));
    for body in ["garbage", "null", "[]", "{\"bogus\":1}", "{\"workflowType\":7}", "\u{0}", &deep, &long] {
        let answer = http.send("POST", WORKFLOW, "Content-Type: application/json\r\n", body).await;
        assert_eq!((answer.status, &answer.json()["code"]), (400, &json!(3)), "{}", answer.body);
    }
    let too_large = http.send("POST", WORKFLOW, "Content-Type: application/json\r\n", &long).await.json();
    assert_eq!(too_large["message"], "http: request body too large");
    // None of it hurt.
    start(&http).await;
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parameter_that_cannot_be_read_is_named() {
    let (given, http) = given().await;
    let message = "parsing field \"page_size\": strconv.ParseInt: parsing \"x\": invalid syntax";
    let expected = json!({ "code": 3, "message": message });
    refused(&http.get("/api/v1/namespaces?pageSize=x").await, 400, &expected);
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_says_how_long_it_waits() {
    let (given, http) = given().await;
    start(&http).await;
    let path = format!("{WORKFLOW}/query/q");
    let late = http.send("POST", &path, "Grpc-Timeout: 300m\r\n", "").await;
    assert_eq!((late.status, &late.json()["code"]), (504, &json!(4)), "{}", late.body);
    let wrong = http.send("POST", &path, "Grpc-Timeout: soon\r\n", "").await;
    refused(&wrong, 400, &json!({ "code": 3, "message": "invalid grpc-timeout: soon" }));
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_that_is_nested_too_deep_is_refused_in_our_own_words() {
    let (given, http) = given().await;
    let failed = |levels: usize| {
        let failure = (1..levels).fold("{}".to_owned(), |cause, _| format!("{{\"cause\":{cause}}}"));
        format!("{{\"workflowId\":\"w\",\"failure\":{failure}}}")
    };
    for (levels, message) in [
        (81, "the request has messages nested more than 80 levels deep"),
        (101, "the request has messages nested more than 80 levels deep"),
        (1000, "the body is nested more than 128 levels deep"),
    ] {
        let path = "/api/v1/namespaces/default/activities/a/fail";
        let answer = http.send("POST", path, "Content-Type: application/json\r\n", &failed(levels)).await;
        refused(&answer, 400, &json!({ "code": 3, "message": message }));
    }
    given.stop().await;
}
