//! The `[component.NAME]` tables: presets laid under them, checked, and put into tree order.

use super::component::{COMPONENTS_MAX, ScenarioComponent, named_children};
use super::replicas;
use crate::presets;
use hybridsim_config::check::{Checker, join, near};
use hybridsim_config::diagnostic::{SourceText, Span};
use hybridsim_config::document::{self, Datum, Table};
use std::path::Path;

/// The machine traverses trees recursively.
const DEPTH_MAX: usize = 200;

/// Checks all components; returns them, children first, and the index of the top one.
pub fn check(
    checker: &mut Checker<'_>,
    root: &Table,
    base: &Path,
    sources: &mut Vec<SourceText>,
) -> Option<(Vec<ScenarioComponent>, usize)> {
    let mut components = Vec::new();
    match root.get("component").map(|item| (&item.value, &item.span)) {
        Some((Datum::Table(tables), span)) if tables.iter().count() > COMPONENTS_MAX => {
            let count = tables.iter().count();
            let message =
                format!("has {count} components; a scenario has at most {COMPONENTS_MAX}");
            checker.problem(Some(span), "component", message, None);
            return None;
        }
        Some((Datum::Table(tables), _)) => {
            let written = tables.iter().filter(|(_, at, _)| at.file == 0);
            let known: Vec<&str> = written.map(|(name, ..)| name).collect();
            for (name, key_span, item) in tables.iter() {
                let key = join("component", name);
                match &item.value {
                    Datum::Table(table)
                        if !known.is_empty() && is_misnamed(table, key_span, sources) =>
                    {
                        let help = match near(name, known.iter().copied()) {
                            Some(near) => format!("did you mean `{near}`?"),
                            None => format!("its components are: {}", known.join(", ")),
                        };
                        let message = "the scenario has no such component".to_owned();
                        checker.problem(Some(&item.span), &key, message, Some(help));
                    }
                    Datum::Table(table) => {
                        components.extend(component(checker, name, table, key_span, base, sources));
                    }
                    other => {
                        let message = format!("expected a table, found {}", other.noun());
                        checker.problem(Some(&item.span), &key, message, None);
                    }
                }
            }
        }
        Some((other, span)) => {
            let message =
                format!("expected tables such as [component.disk], found {}", other.noun());
            checker.problem(Some(span), "component", message, None);
        }
        None => {
            let help =
                "add a table such as [component.disk] with a `kind` or a `preset`".to_owned();
            let message = "the scenario has no component to simulate".to_owned();
            checker.problem(None, "component", message, Some(help));
        }
    }
    replicas::expand(checker, &mut components);
    link(checker, root, components)
}

/// Whether a component that appears only in `--set` options, without `kind` and `preset`, is a
/// misspelt name.
fn is_misnamed(table: &Table, key_span: &Span, sources: &[SourceText]) -> bool {
    sources[key_span.file].name.starts_with("--set")
        && table.get("kind").is_none()
        && table.get("preset").is_none()
}

fn component(
    checker: &mut Checker<'_>,
    name: &str,
    written: &Table,
    span: &Span,
    base: &Path,
    sources: &mut Vec<SourceText>,
) -> Option<ScenarioComponent> {
    let key = join("component", name);
    let mut table = written.clone();
    let mut preset = None;
    if let Some(item) = table.remove("preset") {
        let Datum::Text(preset_name) = &item.value else {
            let message = format!("expected a preset's name, found {}", item.value.noun());
            checker.problem(Some(&item.span), &join(&key, "preset"), message, None);
            return None;
        };
        let mut under = match load_preset(preset_name, base, sources) {
            Ok(under) => under,
            Err(message) => {
                checker.problem(Some(&item.span), &join(&key, "preset"), message, None);
                return None;
            }
        };
        under.overlay(table);
        table = under;
        preset = Some(preset_name.clone());
    }
    let description = match table.get("kind").map(|item| (&item.value, &item.span)) {
        Some((Datum::Text(kind), at)) => {
            checker.describe("component", kind, Some(at), &join(&key, "kind"))?
        }
        _ => {
            let help = "see `hybridsim list component` and `hybridsim list preset`".to_owned();
            checker.problem(Some(span), &key, "needs a `kind` or a `preset`".into(), Some(help));
            return None;
        }
    };
    let count = replicas::take_count(checker, &key, &mut table)?;
    checker.preset = preset.as_ref().map(|_| sources.len() - 1);
    let settings = checker.settings(&table, &[description.params], &["kind"], &key, Some(span));
    checker.preset = None;
    let name = name.to_owned();
    Some(ScenarioComponent {
        name,
        description,
        settings,
        preset,
        count,
        children: Vec::new(),
        span: span.clone(),
    })
}

fn load_preset(name: &str, base: &Path, sources: &mut Vec<SourceText>) -> Result<Table, String> {
    let source = presets::load(name, base)?;
    let table = document::parse(&source, sources.len()).map_err(|problems| {
        let messages: Vec<String> = problems.into_iter().map(|p| p.message).collect();
        format!("{}: {}", source.name, messages.join("; "))
    })?;
    sources.push(source);
    Ok(table)
}

/// The table of component `name` as written.
fn written<'t>(root: &'t Table, name: &str) -> Option<&'t Table> {
    let table = |table: &'t Table, key: &str| match &table.get(key)?.value {
        Datum::Table(inner) => Some(inner),
        _ => None,
    };
    table(table(root, "component")?, name)
}

/// Finds every component's children and parent, the top part, and an order with children first.
fn link(
    checker: &mut Checker<'_>,
    root: &Table,
    mut components: Vec<ScenarioComponent>,
) -> Option<(Vec<ScenarioComponent>, usize)> {
    let names: Vec<String> = components.iter().map(|component| component.name.clone()).collect();
    let mut parent_of: Vec<Option<usize>> = vec![None; components.len()];
    for at in 0..components.len() {
        let table = written(root, &names[at]);
        for (param, child) in named_children(&components[at]) {
            let key = join(&join("component", &names[at]), param);
            let item = table.and_then(|table| table.get(param));
            let span = item.map_or(&components[at].span, |item| &item.span);
            let Some(found) = names.iter().position(|name| *name == child) else {
                if written(root, &child).is_some() {
                    // It exists, and its own problems have been reported.
                    continue;
                }
                let help = near(&child, names.iter().map(String::as_str))
                    .map(|name| format!("did you mean `{name}`?"));
                let message = format!("there is no component called `{child}`");
                checker.problem(Some(span), &key, message, help);
                continue;
            };
            if let Some(other) = parent_of[found] {
                let message = format!(
                    "component `{child}` is already used by `{}`; a component has one parent",
                    names[other]
                );
                checker.problem(Some(span), &key, message, None);
                continue;
            }
            parent_of[found] = Some(at);
            components[at].children.push(found);
        }
    }
    let system = top(checker, root, &components, &parent_of)?;
    let mut order = Vec::new();
    if !post_order(&components, system, &mut order, 0) {
        let message = format!("components are nested more than {DEPTH_MAX} deep");
        checker.problem(
            Some(&components[system].span),
            &join("component", &names[system]),
            message,
            None,
        );
        return None;
    }
    for (at, component) in components.iter().enumerate() {
        if !order.contains(&at) {
            let message = "is not used by the system".to_owned();
            let help = format!(
                "the system is `{}`; name this component in it, or remove it",
                names[system]
            );
            checker.problem(
                Some(&component.span),
                &join("component", &component.name),
                message,
                Some(help),
            );
        }
    }
    if !checker.problems.is_empty() {
        return None;
    }
    let place =
        |old: usize| order.iter().position(|&at| at == old).expect("every component is used");
    let mut sorted: Vec<ScenarioComponent> =
        order.iter().map(|&at| components[at].clone()).collect();
    for component in &mut sorted {
        component.children = component.children.iter().map(|&child| place(child)).collect();
    }
    Some((sorted, place(system)))
}

/// Puts the components below `at`, and then `at`, into `order`; `false` if they lie too deep.
fn post_order(
    components: &[ScenarioComponent],
    at: usize,
    order: &mut Vec<usize>,
    depth: usize,
) -> bool {
    if depth > DEPTH_MAX {
        return false;
    }
    let children = components[at].children.iter();
    if !children.copied().all(|child| post_order(components, child, order, depth + 1)) {
        return false;
    }
    order.push(at);
    true
}

fn top(
    checker: &mut Checker<'_>,
    root: &Table,
    components: &[ScenarioComponent],
    parent_of: &[Option<usize>],
) -> Option<usize> {
    if let Some(item) = root.get("system") {
        let found = match &item.value {
            Datum::Text(name) => components.iter().position(|component| component.name == *name),
            _ => None,
        };
        match found {
            Some(at) if parent_of[at].is_none() => return Some(at),
            Some(_) => {
                let message = "is a child of another component".to_owned();
                checker.problem(Some(&item.span), "system", message, None);
            }
            None => {
                let message = "must be the name of a component".to_owned();
                checker.problem(Some(&item.span), "system", message, None);
            }
        }
        return None;
    }
    let tops: Vec<usize> = (0..components.len()).filter(|&at| parent_of[at].is_none()).collect();
    match tops.as_slice() {
        [only] => Some(*only),
        [] if components.is_empty() => None,
        [] => {
            let message = "the components contain each other in a cycle".to_owned();
            checker.problem(None, "component", message, None);
            None
        }
        several => {
            let names: Vec<&str> = several.iter().map(|&at| components[at].name.as_str()).collect();
            let message = format!("several components have no parent: {}", names.join(", "));
            let help =
                "write `system = \"NAME\"` at the top, or remove the unused components".to_owned();
            checker.problem(None, "system", message, Some(help));
            None
        }
    }
}
