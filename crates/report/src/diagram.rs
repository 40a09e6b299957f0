//! A diagram of the component tree: the host at the top, devices at the bottom.

use svg::Document;
use svg::node::element::{Ellipse, Group, Line, Path, Rectangle, Style, Text, Title};

/// The shape of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A box: hosts, controllers, arrays, caches.
    Box,
    /// A cylinder: hard disks.
    Disk,
    /// A chip with pins: flash.
    Chip,
    /// A bar that devices hang from: buses.
    Bar,
}

/// A component with its children.
#[derive(Clone, Debug)]
pub struct Item {
    pub name: String,
    /// The kind and main parameters, one per line.
    pub lines: Vec<String>,
    pub shape: Shape,
    /// The number of identical components it represents; drawn as a stack if above one.
    pub copies: usize,
    pub children: Vec<Item>,
}

const FONT: f64 = 13.0;
const LINE: f64 = 17.0;
const LETTER: f64 = 7.1;
const SMALL_LETTER: f64 = 6.2;
const PADDING: f64 = 14.0;
const GAP_X: f64 = 22.0;
const GAP_Y: f64 = 40.0;
const MARGIN: f64 = 16.0;
/// Height of the elliptic end of a cylinder.
const LID: f64 = 9.0;
/// Offset between the items of a stack.
const STACK_STEP: f64 = 5.0;
/// Longer lines are truncated.
const LETTERS_MAX: usize = 34;

const STYLE: &str = "\
    .part { fill: #ffffff; stroke: #3b4754; stroke-width: 1.4 } \
    .disk { fill: #eef4fb } .chip { fill: #f1f8ef } .bar { fill: #f4f0e6 } \
    .wire { stroke: #3b4754; stroke-width: 1.4; fill: none } \
    text { font: 12px system-ui, 'Segoe UI', Roboto, sans-serif; fill: #46515d } \
    .name { font-size: 13px; font-weight: 600; fill: #1b1f24 } \
    @media (prefers-color-scheme: dark) { \
      .part { fill: #1f262e; stroke: #9aa5b1 } .disk { fill: #1b2836 } .chip { fill: #1e2b20 } \
      .bar { fill: #2c281c } .wire { stroke: #9aa5b1 } text { fill: #b5bec8 } \
      .name { fill: #e7eaee } }";

/// Up to this many identical siblings are drawn individually, more as a stack.
const ALIKE_MAX: usize = 4;

/// Replaces each group of more than [`ALIKE_MAX`] items that differ only in name by one stack.
pub fn folded(items: Vec<Item>) -> Vec<Item> {
    let mut folded: Vec<Item> = Vec::with_capacity(items.len());
    let mut rest = items.as_slice();
    while let [first, ..] = rest {
        let count = rest.iter().take_while(|item| first.is_like(item)).count();
        let (alike, others) = rest.split_at(count);
        rest = others;
        match alike {
            [first, .., last] if count > ALIKE_MAX => folded.push(first.stack(last, count)),
            few => folded.extend_from_slice(few),
        }
    }
    folded
}

impl Item {
    /// Whether the two differ only in name.
    fn is_like(&self, other: &Self) -> bool {
        let (ours, theirs) = (&self.children, &other.children);
        (self.shape, &self.lines, self.copies) == (other.shape, &other.lines, other.copies)
            && ours.len() == theirs.len()
            && ours.iter().zip(theirs).all(|(ours, theirs)| ours.is_like(theirs))
    }

    /// A stack of `count` items from this one to `last`.
    fn stack(&self, last: &Self, count: usize) -> Self {
        let mut lines = self.lines.clone();
        let kind = if lines.is_empty() { "component".to_owned() } else { lines.remove(0) };
        lines.insert(0, format!("{} to {}", self.name, last.name));
        Self { name: format!("{count} x {kind}"), lines, copies: count, ..self.clone() }
    }
}

/// The diagram as a self-contained SVG that follows the reader's light or dark theme.
pub fn svg(title: &str, root: &Item) -> String {
    format!("{}\n", document(title, root, Some(STYLE)))
}

/// The diagram as an SVG element for a page that has the styles, such as the report.
pub fn inline(title: &str, root: &Item) -> String {
    document(title, root, None).set("class", "diagram").to_string()
}

fn document(title: &str, root: &Item, style: Option<&str>) -> Document {
    let placed = Placed::new(root);
    let (width, height) = (placed.width + 2.0 * MARGIN, placed.height() + 2.0 * MARGIN);
    let mut group = Group::new().set("transform", format!("translate({MARGIN} {MARGIN})"));
    group = placed.wires(group, 0.0, 0.0);
    group = placed.draw(group, 0.0, 0.0);
    let document = Document::new()
        .set("viewBox", (0.0, 0.0, width.ceil(), height.ceil()))
        .set("width", width.ceil())
        .set("height", height.ceil())
        .set("role", "img")
        .add(Title::new(title));
    style.into_iter().fold(document, |document, style| document.add(Style::new(style))).add(group)
}

/// An item with its size and that of its subtree.
struct Placed<'i> {
    item: &'i Item,
    /// Size of the box itself.
    own: (f64, f64),
    /// Width of the subtree.
    width: f64,
    children: Vec<Placed<'i>>,
}

impl<'i> Placed<'i> {
    fn new(item: &'i Item) -> Self {
        let children: Vec<Self> = item.children.iter().map(Self::new).collect();
        let below = children.iter().map(|child| child.width + GAP_X).sum::<f64>() - GAP_X;
        let small = item.lines.iter().map(|line| letters(line) * SMALL_LETTER).fold(0.0, f64::max);
        let text = (letters(&item.name) * LETTER).max(small) + 2.0 * PADDING;
        let lid = if item.shape == Shape::Disk { 2.0 * LID } else { 0.0 };
        let height = (item.lines.len() + 1) as f64 * LINE + PADDING + lid;
        let wide = if item.shape == Shape::Bar { below } else { 0.0 };
        let own = (text.max(96.0).max(wide), height);
        Self { item, own, width: own.0.max(below), children }
    }

    fn height(&self) -> f64 {
        let below = self.children.iter().map(|child| GAP_Y + child.height()).fold(0.0, f64::max);
        self.own.1 + below
    }

    /// Left edges of the children if the subtree starts at `left`.
    fn lefts(&self, left: f64) -> Vec<f64> {
        let below = self.children.iter().map(|child| child.width + GAP_X).sum::<f64>() - GAP_X;
        let mut at = left + (self.width - below) / 2.0;
        let mut lefts = Vec::with_capacity(self.children.len());
        for child in &self.children {
            lefts.push(at);
            at += child.width + GAP_X;
        }
        lefts
    }

    fn wires(&self, mut group: Group, left: f64, top: f64) -> Group {
        let from = (left + self.width / 2.0, top + self.own.1);
        let to_y = from.1 + GAP_Y;
        for (child, child_left) in self.children.iter().zip(self.lefts(left)) {
            let x = child_left + child.width / 2.0;
            group = match self.item.shape {
                Shape::Bar => group.add(
                    Line::new()
                        .set("class", "wire")
                        .set("x1", x)
                        .set("y1", from.1)
                        .set("x2", x)
                        .set("y2", to_y),
                ),
                _ => {
                    let middle = from.1 + GAP_Y / 2.0;
                    let path = format!("M{} {} V{middle} H{x} V{to_y}", from.0, from.1);
                    group.add(Path::new().set("class", "wire").set("d", path))
                }
            };
            group = child.wires(group, child_left, to_y);
        }
        group
    }

    fn draw(&self, mut group: Group, left: f64, top: f64) -> Group {
        let x = left + (self.width - self.own.0) / 2.0;
        if self.item.copies > 1 {
            for behind in [2.0, 1.0] {
                group = self.outline(group, x + behind * STACK_STEP, top - behind * STACK_STEP);
            }
        }
        group = self.outline(group, x, top);
        let middle = x + self.own.0 / 2.0;
        let lid = if self.item.shape == Shape::Disk { LID * 1.5 } else { 0.0 };
        let mut y = top + lid + PADDING / 2.0 + FONT;
        let text = |words: &str, y: f64| {
            Text::new(cut(words)).set("x", middle).set("y", y).set("text-anchor", "middle")
        };
        group = group.add(text(&self.item.name, y).set("class", "name"));
        for line in &self.item.lines {
            y += LINE;
            group = group.add(text(line, y));
        }
        let below = top + self.own.1 + GAP_Y;
        for (child, child_left) in self.children.iter().zip(self.lefts(left)) {
            group = child.draw(group, child_left, below);
        }
        group
    }

    fn outline(&self, group: Group, x: f64, y: f64) -> Group {
        let (width, height) = self.own;
        let rectangle = |class: &str, radius: f64| {
            Rectangle::new()
                .set("class", class)
                .set("x", x)
                .set("y", y)
                .set("width", width)
                .set("height", height)
                .set("rx", radius)
        };
        match self.item.shape {
            Shape::Box => group.add(rectangle("part", 7.0)),
            Shape::Bar => group.add(rectangle("part bar", 3.0)),
            Shape::Chip => pins(group, x, y, width, height).add(rectangle("part chip", 2.0)),
            Shape::Disk => {
                let (top, bottom, half) = (y + LID, y + height - LID, width / 2.0);
                let body = format!(
                    "M{x} {top} V{bottom} A{half} {LID} 0 0 0 {} {bottom} V{top}",
                    x + width
                );
                let lid = Ellipse::new()
                    .set("class", "part disk")
                    .set("cx", x + half)
                    .set("cy", top)
                    .set("rx", half)
                    .set("ry", LID);
                group.add(Path::new().set("class", "part disk").set("d", body)).add(lid)
            }
        }
    }
}

/// The pins of a chip, left and right.
fn pins(mut group: Group, x: f64, y: f64, width: f64, height: f64) -> Group {
    let count = (height / 12.0) as usize;
    for number in 0..count {
        let at = y + (number as f64 + 0.5) * height / count as f64;
        for (from, to) in [(x - 5.0, x), (x + width, x + width + 5.0)] {
            let pin = Line::new().set("class", "wire");
            group = group.add(pin.set("x1", from).set("x2", to).set("y1", at).set("y2", at));
        }
    }
    group
}

fn letters(text: &str) -> f64 {
    text.chars().count().min(LETTERS_MAX) as f64
}

fn cut(text: &str) -> String {
    match text.chars().count() > LETTERS_MAX {
        true => text.chars().take(LETTERS_MAX - 3).chain("...".chars()).collect(),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(name: &str, shape: Shape, children: Vec<Item>) -> Item {
        Item { name: name.to_owned(), lines: vec!["a line".to_owned()], shape, copies: 1, children }
    }

    #[test]
    fn every_component_is_drawn_once_and_its_text_is_escaped() {
        let disks = (0..3).map(|at| item(&format!("d{at}"), Shape::Disk, Vec::new())).collect();
        let bus = item("bus", Shape::Bar, disks);
        let flash = item("<b>&\"flash\"", Shape::Chip, Vec::new());
        let picture = svg("a <title>", &item("host", Shape::Box, vec![bus, flash]));
        for name in ["host", "bus", "d0", "d1", "d2", "&lt;b&gt;&amp;"] {
            assert_eq!(picture.matches(&format!("\n{name}")).count(), 1, "{name}\n{picture}");
        }
        assert!(!picture.contains("<b>") && picture.contains("a &lt;title&gt;"), "{picture}");
        assert!(picture.contains("<style>"));
        let inside = inline("a <title>", &item("<b>", Shape::Box, Vec::new()));
        assert!(inside.starts_with("<svg ") && !inside.contains("<style>"), "{inside}");
        assert!(!inside.contains("<b>") && inside.contains("a &lt;title&gt;"), "{inside}");
        assert_eq!(picture.matches("<ellipse").count(), 3);
    }

    #[test]
    fn identical_components_become_a_stack() {
        let disks = |count: usize| -> Vec<Item> {
            (0..count).map(|at| item(&format!("d{at}"), Shape::Disk, Vec::new())).collect()
        };
        let names = |items: Vec<Item>| -> Vec<String> {
            folded(items).into_iter().map(|item| item.name).collect()
        };
        assert_eq!(names(disks(3)), ["d0", "d1", "d2"]);
        assert_eq!(names(disks(24)), ["24 x a line"]);
        let mut mixed = disks(6);
        mixed.push(item("flash", Shape::Chip, Vec::new()));
        assert_eq!(names(mixed), ["6 x a line", "flash"]);
        let mut apart = disks(6);
        apart[2].lines.push("another size".to_owned());
        assert_eq!(names(apart).len(), 6);
        assert_eq!(folded(disks(24))[0].lines, ["d0 to d23"]);
        let picture = svg("t", &item("host", Shape::Box, folded(disks(24))));
        assert_eq!(picture.matches("<ellipse").count(), 3, "a stack of three");
        assert_eq!(picture.matches("24 x a line").count(), 1);
    }

    #[test]
    fn boxes_do_not_overlap_and_stay_inside() {
        let leaf = |name: &str| item(name, Shape::Box, Vec::new());
        let left = item("left", Shape::Box, vec![leaf("a"), leaf("b"), leaf("c")]);
        let tree = item("root", Shape::Box, vec![left, leaf("right")]);
        let placed = Placed::new(&tree);
        let lefts = placed.lefts(0.0);
        assert!(lefts[0] >= 0.0);
        assert!(lefts[1] >= lefts[0] + placed.children[0].width + GAP_X - 1e-9);
        assert!(lefts[1] + placed.children[1].width <= placed.width + 1e-9);
        assert_eq!(placed.height(), 3.0 * placed.own.1 + 2.0 * GAP_Y);
    }

    #[test]
    fn long_lines_are_truncated() {
        let long = "x".repeat(100);
        assert!(svg("t", &item(&long, Shape::Box, Vec::new())).contains("xxx..."));
    }
}
