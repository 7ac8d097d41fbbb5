//! Each scenario, small: all operations succeed, and every history is complete.

use crate::given::a_node;

async fn check(scenario: &str, count: u64, more: &[&str]) {
    let given = a_node().await;
    let count_text = count.to_string();
    let arguments = ["--count", &count_text, "--concurrency", "8", "--histories", "all"];
    let arguments: Vec<&str> = [scenario].into_iter().chain(arguments).chain(more.iter().copied()).collect();
    let (output, figures) = given.stress(&arguments).await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(figures["operations"], count, "{said}");
    assert_eq!(figures["failed"], 0, "{said}");
    assert_eq!(figures["verified"]["n_flaws"], 0, "{said}");
    let n_workflows = figures["workflows"].as_u64().expect("a count");
    assert!(n_workflows > 0);
    assert_eq!(figures["verified"]["histories_checked"], n_workflows, "{said}");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn workflows_that_do_nothing_complete() {
    check("no-op", 40, &["--warm-up", "5"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn workflows_of_one_activity_complete() {
    check("one-activity", 30, &["--payload-bytes", "2000"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn chains_of_activities_complete() {
    check("chain", 8, &["--size", "4"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn activities_all_at_once_complete() {
    check("fan-out", 4, &["--size", "20"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_to_one_workflow_are_all_in_its_sum() {
    check("signals-to-one", 200, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_to_many_workflows_are_each_in_the_right_sum() {
    check("signals-to-many", 100, &["--size", "7"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn timers_of_the_same_second_all_fire() {
    check("timers", 8, &["--size", "5"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn children_complete_before_their_parents() {
    check("children", 8, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn chains_of_runs_are_followed_to_their_end() {
    check("continue-as-new", 8, &["--size", "3"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn updates_are_completed_with_their_own_answer() {
    check("updates", 40, &["--size", "8"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_are_answered_with_what_the_workflow_knows() {
    check("queries", 40, &["--size", "8"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_tell_of_the_one_run_that_is_asked_for() {
    check("lists", 40, &["--size", "8"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_listed_when_they_start_and_as_closed_when_they_end() {
    check("listed-open", 8, &[]).await;
    check("listed-closed", 8, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_is_drained() {
    check("backlog", 40, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_kinds_at_once_get_along() {
    check("mixed", 60, &[]).await;
}
