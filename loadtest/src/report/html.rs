//! The page: one file, no script, nothing that is loaded from elsewhere.

use std::fmt::Write as _;

use super::plot::{self, Line};
use super::{Figures, Point};
use crate::view::load_text;

const STYLE: &str = "
body { font: 15px/1.5 system-ui, sans-serif; max-width: 900px; margin: 2em auto; padding: 0 1em; color: #1c2733; background: #fff }
h1 { font-size: 1.4em } h2 { font-size: 1.1em; margin-top: 2em }
table { border-collapse: collapse } td, th { padding: .2em 1.2em .2em 0; text-align: left; font-variant-numeric: tabular-nums }
.good { color: #13733b } .bad { color: #b3261e; font-weight: 600 }
svg { width: 100%; height: auto } svg text { font-size: 11px; fill: #5b6875 }
polyline { fill: none; stroke-width: 1.8 } .grid { stroke: #e3e8ed } .key { margin: 0; color: #5b6875; font-size: .9em }
@media (prefers-color-scheme: dark) { body { background: #14191f; color: #dbe3ea } .grid { stroke: #2b343d } }
";

#[must_use]
pub fn page(figures: &Figures) -> String {
    let name = figures.plan.scenario.name();
    let mut html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{name} — everrow-stress</title><style>{STYLE}</style><h1>{name}, {}</h1>",
        load_text(&figures.plan.load)
    );
    verdict(&mut html, figures);
    table(&mut html, figures);
    let series = |value: fn(&Point) -> f64| figures.timeline.iter().map(|p| (p.at_s, value(p))).collect();
    html.push_str("<h2>Throughput</h2>");
    html.push_str(&plot::svg(
        "a second",
        &[
            Line { name: "operations", color: "#2266cc", points: series(|p| p.operations_per_s) },
            Line { name: "errors", color: "#b3261e", points: series(|p| p.errors_per_s) },
        ],
    ));
    html.push_str("<h2>Latency</h2>");
    html.push_str(&plot::svg(
        "ms",
        &[
            Line { name: "p50", color: "#13733b", points: series(|p| p.latency.p50_ms) },
            Line { name: "p90", color: "#2266cc", points: series(|p| p.latency.p90_ms) },
            Line { name: "p99", color: "#b36b00", points: series(|p| p.latency.p99_ms) },
            Line { name: "max", color: "#b3261e", points: series(|p| p.latency.max_ms) },
        ],
    ));
    html.push_str("</html>\n");
    html
}

fn verdict(html: &mut String, figures: &Figures) {
    let verified = &figures.verified;
    if figures.is_good {
        let _ = write!(
            html,
            "<p class=\"good\">Verified: {} workflows completed once with the right result; {} histories are complete.</p>",
            verified.workflows_completed, verified.histories_checked
        );
        return;
    }
    let _ = write!(html, "<p class=\"bad\">{} flaws, {} operations failed.</p><ul>", verified.n_flaws, figures.failed);
    for reason in verified.flaws.iter().chain(&figures.failures) {
        let _ = write!(html, "<li>{}</li>", escaped(reason));
    }
    html.push_str("</ul>");
}

fn table(html: &mut String, figures: &Figures) {
    let latency = &figures.latency;
    let rows = [
        ("server", escaped(&figures.plan.address)),
        ("operations", figures.operations.to_string()),
        ("workflows", figures.workflows.to_string()),
        ("elapsed", format!("{:.1} s", figures.elapsed_s)),
        ("throughput", format!("{:.1} a second", figures.operations_per_s)),
        (
            "latency p50 / p90 / p99",
            format!("{:.1} / {:.1} / {:.1} ms", latency.p50_ms, latency.p90_ms, latency.p99_ms),
        ),
        ("latency p99.9 / max", format!("{:.1} / {:.1} ms", latency.p999_ms, latency.max_ms)),
        ("errors, also those tried again", figures.errors.values().sum::<u64>().to_string()),
    ];
    html.push_str("<table>");
    for (name, value) in rows {
        let _ = write!(html, "<tr><th>{name}</th><td>{value}</td></tr>");
    }
    html.push_str("</table>");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
