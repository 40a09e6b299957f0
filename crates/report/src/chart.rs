//! A line chart as an SVG image that follows the reader's light or dark theme.

use crate::figures::number;
use crate::study::{Axis, Plot};
use svg::Document;
use svg::node::element::{Group, Line, Polyline, Style, Text, Title};

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 170.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 58.0;
const LEGEND_LINE: f64 = 20.0;
const TICKS_MAX: usize = 11;
/// Colours for the light and the dark theme; further lines are dashed.
const COLOURS: [(&str, &str); 8] = [
    ("#0b62b5", "#4da3ff"),
    ("#e07b00", "#ffa033"),
    ("#00614a", "#7fe8c9"),
    ("#b8479b", "#e88fcd"),
    ("#7a6200", "#e0c34a"),
    ("#8e5bd6", "#c9a6ff"),
    ("#8a4b2a", "#d9a183"),
    ("#c2185b", "#ff6f9f"),
];
const DASHES: [&str; 4] = ["", "7 4", "2 3", "12 4 2 4"];

/// Draws `plot`, without its caption.
pub fn svg(plot: &Plot) -> String {
    let points = || plot.curves.iter().flat_map(|curve| curve.points.iter().copied());
    let x = Scale::new(&plot.x, points().map(|point| point.0), (LEFT, WIDTH - RIGHT));
    let y = Scale::new(&plot.y, points().map(|point| point.1), (HEIGHT - BOTTOM, TOP));
    let mut group = Group::new();
    group = grid(group, &x, &y);
    for (at, curve) in plot.curves.iter().enumerate() {
        let shown = curve.points.iter().filter(|point| x.shows(point.0) && y.shows(point.1));
        let place = |&(across, up): &(f64, f64)| {
            format!("{:.1},{:.1}", x.coordinate(across), y.coordinate(up))
        };
        let points = shown.map(place).collect::<Vec<_>>().join(" ");
        group = group.add(styled(Polyline::new().set("points", points), at));
        let key_y = TOP + 10.0 + at as f64 * LEGEND_LINE;
        let key = Polyline::new().set(
            "points",
            format!("{0},{key_y} {1},{key_y}", WIDTH - RIGHT + 16.0, WIDTH - RIGHT + 44.0),
        );
        group = group.add(styled(key, at)).add(
            Text::new(curve.name.clone()).set("x", WIDTH - RIGHT + 52.0).set("y", key_y + 4.0),
        );
    }
    group = titles(group, plot);
    let height = HEIGHT.max(TOP + (plot.curves.len() + 1) as f64 * LEGEND_LINE);
    let document = Document::new()
        .set("viewBox", (0.0, 0.0, WIDTH, height))
        .set("width", WIDTH)
        .set("height", height)
        .set("role", "img")
        .add(Title::new(plot.title.clone()))
        .add(Style::new(style()))
        .add(group);
    format!("{document}\n")
}

fn styled(line: Polyline, at: usize) -> Polyline {
    let dash = DASHES[at / COLOURS.len() % DASHES.len()];
    let line = line.set("class", format!("curve c{}", at % COLOURS.len()));
    if dash.is_empty() { line } else { line.set("stroke-dasharray", dash) }
}

fn style() -> String {
    let mut style = String::from(
        "text { font: 12px system-ui, 'Segoe UI', Roboto, sans-serif; fill: #46515d } \
         .title { font-size: 15px; font-weight: 600; fill: #1b1f24 } \
         .grid { stroke: #d9dee5 } .curve { fill: none; stroke-width: 2 } ",
    );
    let colours = COLOURS.iter().enumerate();
    colours.clone().for_each(|(at, (light, _))| style += &format!(".c{at} {{ stroke: {light} }} "));
    style += "@media (prefers-color-scheme: dark) { text { fill: #b5bec8 } \
              .title { fill: #e7eaee } .grid { stroke: #39424d } svg { background: #12151a } ";
    colours.for_each(|(at, (_, dark))| style += &format!(".c{at} {{ stroke: {dark} }} "));
    style + "}"
}

fn grid(mut group: Group, x: &Scale<'_>, y: &Scale<'_>) -> Group {
    let line = |from: (f64, f64), to: (f64, f64)| {
        Line::new()
            .set("class", "grid")
            .set("x1", from.0)
            .set("y1", from.1)
            .set("x2", to.0)
            .set("y2", to.1)
    };
    for tick in x.ticks() {
        let at = x.coordinate(tick);
        group = group.add(line((at, TOP), (at, HEIGHT - BOTTOM))).add(
            Text::new(x.tick_label(tick))
                .set("x", at)
                .set("y", HEIGHT - BOTTOM + 18.0)
                .set("text-anchor", "middle"),
        );
    }
    for tick in y.ticks() {
        let at = y.coordinate(tick);
        group = group.add(line((LEFT, at), (WIDTH - RIGHT, at))).add(
            Text::new(y.tick_label(tick))
                .set("x", LEFT - 8.0)
                .set("y", at + 4.0)
                .set("text-anchor", "end"),
        );
    }
    group
}

fn titles(group: Group, plot: &Plot) -> Group {
    let (middle_x, middle_y) = ((LEFT + WIDTH - RIGHT) / 2.0, (TOP + HEIGHT - BOTTOM) / 2.0);
    group
        .add(Text::new(plot.title.clone()).set("x", LEFT).set("y", 24.0).set("class", "title"))
        .add(
            Text::new(plot.x.label.clone())
                .set("x", middle_x)
                .set("y", HEIGHT - 16.0)
                .set("text-anchor", "middle"),
        )
        .add(
            Text::new(plot.y.label.clone())
                .set("transform", format!("translate(18 {middle_y}) rotate(-90)"))
                .set("text-anchor", "middle"),
        )
}

struct Scale<'a> {
    axis: &'a Axis,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl<'a> Scale<'a> {
    fn new(axis: &'a Axis, values: impl Iterator<Item = f64>, (from, to): (f64, f64)) -> Self {
        let usable = |value: &f64| value.is_finite() && (!axis.logarithmic || *value > 0.0);
        let (mut low, mut high) = values
            .filter(usable)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        if low > high {
            (low, high) = (1.0, 2.0);
        }
        if axis.unit == "share" {
            (low, high) = (0.0, 1.0);
        } else if !axis.logarithmic {
            low = low.min(0.0);
        }
        if low == high {
            high = if low == 0.0 { 1.0 } else { low * 2.0 };
        }
        Self { axis, low, high, from, to }
    }

    fn shows(&self, value: f64) -> bool {
        value.is_finite() && (!self.axis.logarithmic || value > 0.0)
    }

    fn coordinate(&self, value: f64) -> f64 {
        let share = match self.axis.logarithmic {
            true => (value / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        self.from + share * (self.to - self.from)
    }

    fn ticks(&self) -> Vec<f64> {
        if !self.axis.logarithmic {
            let rough = (self.high - self.low) / 5.0;
            let ten = 10_f64.powf(rough.log10().floor());
            let step = [1.0, 2.0, 5.0, 10.0].map(|of| of * ten).into_iter().find(|s| *s >= rough);
            let step = step.unwrap_or(ten);
            let first = (self.low / step).ceil();
            return (0..=20)
                .map(|at| (first + f64::from(at)) * step)
                .take_while(|tick| *tick <= self.high + step * 1e-9)
                .collect();
        }
        let base: f64 = if self.axis.unit == "bytes" { 2.0 } else { 10.0 };
        let log = |value: f64| value.ln() / base.ln();
        let (first, last) =
            ((log(self.low) - 1e-9).ceil() as i32, (log(self.high) + 1e-9).floor() as i32);
        let count = usize::try_from(last - first + 1).unwrap_or(0);
        let every = count.div_ceil(TICKS_MAX).max(1);
        (first..=last).step_by(every).map(|power| base.powi(power)).collect()
    }

    fn tick_label(&self, value: f64) -> String {
        match self.axis.unit.as_str() {
            "share" => format!("{} %", number((value * 1e4).round() / 100.0)),
            "bytes" => {
                let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
                let step = (0..units.len()).rev().find(|step| value >= 1024_f64.powi(*step as i32));
                let step = step.unwrap_or(0);
                format!("{} {}", number(value / 1024_f64.powi(step as i32)), units[step])
            }
            _ => number(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Curve;

    fn plot(curves: Vec<Curve>) -> Plot {
        Plot {
            title: "a <title>".to_owned(),
            caption: String::new(),
            x: Axis::logarithmic("Cache", "bytes"),
            y: Axis::linear("Miss ratio", "share"),
            curves,
        }
    }

    #[test]
    fn lines_are_where_their_points_are() {
        let line = Curve::ours("lru", vec![(1024.0, 1.0), (32_768.0, 0.5), (1_048_576.0, 0.0)]);
        let picture = svg(&plot(vec![line]));
        let (right, middle) = (WIDTH - RIGHT, (LEFT + WIDTH - RIGHT) / 2.0);
        let bottom = HEIGHT - BOTTOM;
        let points = format!(
            "{LEFT:.1},{TOP:.1} {middle:.1},{:.1} {right:.1},{bottom:.1}",
            (TOP + bottom) / 2.0
        );
        assert!(picture.contains(&points), "{points}\n{picture}");
        for words in ["a &lt;title&gt;", "1 KiB", "1 MiB", "100 %", "lru"] {
            assert!(picture.contains(words), "{words}");
        }
    }

    #[test]
    fn empty_and_invalid_data_are_drawn() {
        assert!(svg(&plot(vec![])).contains("</svg>"));
        let odd = vec![(0.0, 0.5), (-1.0, f64::NAN), (5.0, f64::INFINITY), (7.0, 0.2)];
        let picture = svg(&plot(vec![Curve::ours("odd", odd)]));
        assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
    }

    #[test]
    fn more_lines_than_colours_are_dashed() {
        let line = |at: usize| Curve::ours(&format!("p{at}"), vec![(1.0, 0.1), (9.0, 0.2)]);
        let picture = svg(&plot((0..12).map(line).collect()));
        assert_eq!(picture.matches("stroke-dasharray=\"7 4\"").count(), 2 * 4);
    }
}
