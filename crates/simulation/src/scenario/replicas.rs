//! Components with `count`: that many copies, which stand in the place of the one in its parent.

use super::component::{COMPONENTS_MAX, ScenarioComponent, named_children};
use hybridsim_config::check::{Checker, join};
use hybridsim_config::document::{Datum, Table};
use hybridsim_config::param::{Kind, Value};

pub(super) const COUNT: &str = "count";

/// Takes `count` out of the table of a component; 1 without it.
pub(super) fn take_count(checker: &mut Checker<'_>, key: &str, table: &mut Table) -> Option<u64> {
    let Some(item) = table.remove(COUNT) else { return Some(1) };
    let found = match item.value {
        Datum::Integer(count) => u64::try_from(count).ok(),
        _ => None,
    };
    let count = found.filter(|count| (1..=COMPONENTS_MAX as u64).contains(count));
    if count.is_none() {
        let message = format!("expected a number of copies from 1 to {COMPONENTS_MAX}");
        checker.problem(Some(&item.span), &join(key, COUNT), message, None);
    }
    count
}

/// Replaces every component with a count above one by copies called `NAME0`, `NAME1` and so on,
/// each with copies of its children.
pub(super) fn expand(checker: &mut Checker<'_>, components: &mut Vec<ScenarioComponent>) {
    while let Some(at) = outermost(components) {
        let name = components[at].name.clone();
        let key = join(&join("component", &name), COUNT);
        let span = components[at].span.clone();
        let count = std::mem::replace(&mut components[at].count, 1);
        let subtree = subtree(components, &name);
        let size = subtree.len() as u64 * count + (components.len() - subtree.len()) as u64;
        if size > COMPONENTS_MAX as u64 {
            let message =
                format!("makes {size} components; a scenario has at most {COMPONENTS_MAX}");
            checker.problem(Some(&span), &key, message, None);
            return;
        }
        let Some(parent) = list_with(components, &name) else {
            let message = format!("`{name}` is not in a list of components, such as `members`");
            let help = "only such a component can have copies".to_owned();
            checker.problem(Some(&span), &key, message, Some(help));
            return;
        };
        let copies: Vec<ScenarioComponent> = (0..count)
            .flat_map(|number| subtree.iter().map(move |at| (number, *at)))
            .map(|(number, at)| copy(&components[at], number))
            .collect();
        let taken = |copy: &ScenarioComponent| components.iter().any(|it| it.name == copy.name);
        if let Some(copy) = copies.iter().find(|copy| taken(copy)) {
            let message =
                format!("a copy would be called `{}`, as another component is", copy.name);
            checker.problem(Some(&span), &key, message, None);
            return;
        }
        let names: Vec<String> = (0..count).map(|number| numbered(&name, number)).collect();
        replace_in_list(&mut components[parent.0], parent.1, &name, &names);
        let mut gone = subtree;
        gone.sort_unstable_by_key(|at| std::cmp::Reverse(*at));
        for at in gone {
            components.remove(at);
        }
        components.extend(copies);
    }
}

/// A component with copies that is not below another one with copies: names of nested copies end
/// in the number of the outer one, and then of the inner one.
fn outermost(components: &[ScenarioComponent]) -> Option<usize> {
    let many = || components.iter().filter(|component| component.count > 1);
    let is_below = |at: usize| {
        many().any(|other| {
            other.name != components[at].name && subtree(components, &other.name).contains(&at)
        })
    };
    (0..components.len()).find(|&at| components[at].count > 1 && !is_below(at))
}

/// The component called `name` and everything below it, as indices.
fn subtree(components: &[ScenarioComponent], name: &str) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    let mut wanted = vec![name.to_owned()];
    while let Some(name) = wanted.pop() {
        let at = components.iter().position(|component| component.name == name);
        if let Some(at) = at.filter(|at| !found.contains(at)) {
            found.push(at);
            wanted.extend(named_children(&components[at]).into_iter().map(|(_, child)| child));
        }
    }
    found
}

/// The component that has `name` in a list, and the parameter that is the list.
fn list_with(components: &[ScenarioComponent], name: &str) -> Option<(usize, &'static str)> {
    components.iter().enumerate().find_map(|(at, component)| {
        let lists = component.description.params.iter().filter(|it| it.kind == Kind::Components);
        let has = |param: &&hybridsim_config::param::Param| {
            let names = component.settings.texts_opt(param.name).unwrap_or(&[]);
            names.iter().any(|other| other == name)
        };
        lists.into_iter().find(has).map(|param| (at, param.name))
    })
}

fn replace_in_list(
    component: &mut ScenarioComponent,
    param: &'static str,
    name: &str,
    copies: &[String],
) {
    let names = component.settings.texts(param).iter().flat_map(|other| match other == name {
        true => copies.to_vec(),
        false => vec![other.clone()],
    });
    let names = names.collect();
    component.settings.set(param, Value::Texts(names));
}

fn numbered(name: &str, number: u64) -> String {
    format!("{name}{number}")
}

/// Copy `number` of a component, with its children's names.
fn copy(component: &ScenarioComponent, number: u64) -> ScenarioComponent {
    let mut copy = component.clone();
    copy.name = numbered(&component.name, number);
    for param in component.description.params {
        let renamed = match (param.kind, component.settings.value(param.name)) {
            (Kind::Component, Some(Value::Text(name))) => Value::Text(numbered(name, number)),
            (Kind::Components, Some(Value::Texts(names))) => {
                Value::Texts(names.iter().map(|name| numbered(name, number)).collect())
            }
            _ => continue,
        };
        copy.settings.set(param.name, renamed);
    }
    copy
}
