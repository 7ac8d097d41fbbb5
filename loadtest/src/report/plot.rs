//! Lines over time, as SVG that needs nothing else.

use std::fmt::Write as _;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 64.0;
const BOTTOM: f64 = 28.0;
const TOP: f64 = 12.0;
const TICKS: u32 = 4;

pub(super) struct Line {
    pub(super) name: &'static str,
    pub(super) color: &'static str,
    /// Moment and value.
    pub(super) points: Vec<(f64, f64)>,
}

pub(super) fn svg(unit: &str, lines: &[Line]) -> String {
    let all = || lines.iter().flat_map(|line| &line.points);
    let x_max = all().map(|(x, _)| *x).fold(1.0, f64::max);
    let y_max = round_up(all().map(|(_, y)| *y).fold(0.0, f64::max));
    let x = |value: f64| LEFT + value / x_max * (WIDTH - LEFT - 12.0);
    let y = |value: f64| HEIGHT - BOTTOM - value / y_max * (HEIGHT - BOTTOM - TOP);
    let mut svg = format!(r#"<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">"#);
    for tick in 0..=TICKS {
        let share = f64::from(tick) / f64::from(TICKS);
        let (value, at) = (y_max * share, y(y_max * share));
        let _ = write!(
            svg,
            r#"<line class="grid" x1="{LEFT}" x2="{WIDTH}" y1="{at:.1}" y2="{at:.1}"/><text x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
            LEFT - 6.0,
            at + 4.0,
            short(value)
        );
        let moment = x_max * share;
        let _ = write!(
            svg,
            r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">{} s</text>"#,
            x(moment),
            HEIGHT - 8.0,
            short(moment)
        );
    }
    for line in lines {
        let points: Vec<String> = line.points.iter().map(|(at, v)| format!("{:.1},{:.1}", x(*at), y(*v))).collect();
        let _ = write!(svg, r#"<polyline points="{}" style="stroke:{}"/>"#, points.join(" "), line.color);
    }
    svg.push_str("</svg><p class=\"key\">");
    for line in lines {
        let _ = write!(svg, r#"<span style="color:{}">■</span> {} &ensp; "#, line.color, line.name);
    }
    let _ = write!(svg, "({unit})</p>");
    svg
}

/// The next of 1, 2, 5, 10, 20 … that is not smaller.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0].iter().map(|step| step * power).find(|bound| *bound >= value).unwrap_or(value)
}

fn short(value: f64) -> String {
    if value >= 10.0 || value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    //! Axes end at round figures.

    use super::*;

    #[test]
    fn an_axis_ends_at_a_round_figure_above_the_largest_value() {
        for (value, bound) in [(0.0, 1.0), (0.7, 1.0), (3.0, 5.0), (7.5, 10.0), (120.0, 200.0)] {
            assert!((round_up(value) - bound).abs() < 1e-9, "{value} gives {}", round_up(value));
        }
    }
}
