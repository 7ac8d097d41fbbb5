//! What the driver leaves behind, and how it ends.

use crate::given::{a_node, run};

#[tokio::test(flavor = "multi_thread")]
async fn the_page_has_its_plots_and_loads_nothing() {
    let given = a_node().await;
    let page = given.path("page.html");
    let name = page.display().to_string();
    let (_, figures) = given.stress(&["no-op", "--duration", "2s", "--concurrency", "4", "--html", &name]).await;
    let html = std::fs::read_to_string(page).expect("there is a page");
    assert_eq!(html.matches("<svg").count(), 2);
    assert!(html.contains("<polyline") && html.contains("Verified: "), "{html}");
    for loaded in ["<script", "src=", "href=", "@import", "url("] {
        assert!(!html.contains(loaded), "{loaded} in {html}");
    }
    assert!(figures["timeline"].as_array().is_some_and(|points| points.len() >= 2), "{figures}");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_listens_the_driver_fails_and_says_why() {
    let output = run(["no-op", "--address", "127.0.0.1:1", "--count", "1"].map(String::from).to_vec()).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot connect to 127.0.0.1:1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_is_a_wrong_use() {
    let output = run(["no-op", "--duration", "5"].map(String::from).to_vec()).await;
    assert_eq!(output.status.code(), Some(2));
}
