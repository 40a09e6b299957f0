//! A component of a scenario.

use hybridsim_config::check::join;
use hybridsim_config::diagnostic::{Diagnostic, Span};
use hybridsim_config::param::{Kind, Settings};
use hybridsim_config::registry::Description;

/// Most components of a scenario: the machine numbers them with 16 bits.
pub(super) const COMPONENTS_MAX: usize = 10_000;

/// A checked component.
#[derive(Clone, Debug)]
pub struct ScenarioComponent {
    /// The name in the scenario.
    pub name: String,
    /// The kind.
    pub description: Description,
    /// The parameters.
    pub settings: Settings,
    /// The preset it started from.
    pub preset: Option<String>,
    /// Copies of it; 1 once the scenario is checked.
    pub count: u64,
    /// Indices of its children in the scenario's list.
    pub children: Vec<usize>,
    /// The place in the sources.
    pub span: Span,
}

impl ScenarioComponent {
    /// A problem of the component, or of its parameter `param` where that is not empty.
    pub(crate) fn problem(&self, param: &str, message: String, help: Option<&str>) -> Diagnostic {
        let key = join(&join("component", &self.name), param);
        Diagnostic {
            span: Some(self.span.clone()),
            key: key.trim_end_matches('.').to_owned(),
            message,
            help: help.map(str::to_owned),
        }
    }
}

/// The children a component's settings name, each with its parameter, in order of declaration.
pub(super) fn named_children(component: &ScenarioComponent) -> Vec<(&'static str, String)> {
    let mut children = Vec::new();
    for param in component.description.params {
        let names = match param.kind {
            Kind::Component => {
                component.settings.text_opt(param.name).map(str::to_owned).into_iter().collect()
            }
            Kind::Components => component.settings.texts_opt(param.name).unwrap_or(&[]).to_vec(),
            _ => Vec::new(),
        };
        children.extend(names.into_iter().map(|name| (param.name, name)));
    }
    children
}
