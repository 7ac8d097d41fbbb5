//! Loads other than the plain closed loop.

use crate::given::a_node;

#[tokio::test(flavor = "multi_thread")]
async fn an_open_loop_begins_as_many_as_its_rate_says() {
    let given = a_node().await;
    let (output, figures) = given.stress(&["no-op", "--rate", "20", "--duration", "2s"]).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(figures["operations"], 40, "{figures}");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_a_ramp_half_as_many_begin() {
    let given = a_node().await;
    let (_, figures) = given.stress(&["no-op", "--rate", "20", "--duration", "2s", "--ramp", "2s"]).await;
    assert_eq!(figures["operations"], 20, "{figures}");
    given.stop().await;
}

/// One at a time and many due at once: each waits for those before it, and that counts.
#[tokio::test(flavor = "multi_thread")]
async fn in_an_open_loop_the_time_that_an_operation_waited_for_its_turn_counts() {
    let given = a_node().await;
    let (_, figures) = given.stress(&["no-op", "--rate", "100000", "--count", "300", "--in-flight-max", "1"]).await;
    let latency = |name: &str| figures["latency"][name].as_f64().expect("a figure");
    let elapsed_ms = figures["elapsed_s"].as_f64().expect("a figure") * 1000.0;
    assert!(latency("max_ms") > 0.9 * elapsed_ms, "the last one waited for all others: {figures}");
    assert!(latency("p50_ms") > 0.2 * elapsed_ms, "the one in the middle waited for half of them: {figures}");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_namespaces_and_task_queues_are_used_and_made_if_they_are_missing() {
    let given = a_node().await;
    let places = ["--namespace", "made-here", "--namespaces", "2", "--task-queues", "2"];
    let arguments: Vec<&str> =
        ["one-activity", "--count", "16", "--histories", "all"].into_iter().chain(places).collect();
    let (output, figures) = given.stress(&arguments).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(figures["verified"]["histories_checked"], 16);
    given.stop().await;
}
