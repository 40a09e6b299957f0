//! Policies written in Python.
//!
//! A class is named in a scenario by its import path, as `{ kind = "python", class = "module:Class"
//! }`, or registered under a name of its own. A registered class becomes an entry like any other,
//! identified by the default of a parameter `class`, because builders are plain functions that see
//! only settings.

mod admission;
mod cleanup;
pub mod device;
pub mod flash;
mod ftl;
mod gc;
mod object;
mod replacement;
pub mod request;
pub mod scheduler;

use crate::failure;
use hybridsim_config::param::{EntryChoice, Kind, Param, Problem, Settings, Value};
use hybridsim_config::params::field;
use hybridsim_config::registry::{Description, Registry};
use hybridsim_simulation::registry::{IN_PYTHON, standard};
use hybridsim_simulation::scenario::Scenario;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::{Mutex, MutexGuard, PoisonError};

struct RegisteredClass {
    category: String,
    class: Py<PyAny>,
    description: Description,
}

static REGISTERED: Mutex<Vec<RegisteredClass>> = Mutex::new(Vec::new());

fn registered() -> MutexGuard<'static, Vec<RegisteredClass>> {
    // A panic cannot leave the list inconsistent.
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

const CLASS: Param = Param::required(
    "class",
    Kind::Text,
    "The Python class, as \"module:Class\" or \"file.py:Class\".",
);
const OPTIONS: Param = Param::optional(
    "options",
    Kind::Text,
    "Keyword arguments of the class, as a JSON object in a string.",
);

/// The entry that names a class by its path.
const fn by_path(summary: &'static str) -> Description {
    Description { name: "python", summary, origin: "your own", params: &[CLASS, OPTIONS] }
}

/// Set to 1 where scenarios may name classes by their path, which runs their code. A variable of
/// the environment, so that processes started from here may do the same.
const ALLOW_CODE: &str = "HYBRIDSIM_ALLOW_CODE";

/// The entries that scenarios can name: those that ship with the program, those registered from
/// Python, and classes by their path if the user allows it.
pub fn registry() -> Registry {
    registry_with(std::env::var_os(ALLOW_CODE).is_some_and(|allowed| allowed == "1"))
}

/// The entries that scenarios can name with permission to run code, for descriptions.
pub fn complete_registry() -> Registry {
    registry_with(true)
}

fn registry_with(paths: bool) -> Registry {
    let mut registry = standard();
    for (category, summary) in IN_PYTHON.into_iter().filter(|_| paths) {
        add(&mut registry, category, by_path(summary));
    }
    for class in registered().iter() {
        add(&mut registry, &class.category, class.description);
    }
    registry
}

fn add(registry: &mut Registry, category: &str, description: Description) {
    match category {
        "ftl" => registry.add(ftl::entry(description)),
        "replacement" => registry.add(replacement::entry(description)),
        "admission" => registry.add(admission::entry(description)),
        "cleanup" => registry.add(cleanup::entry(description)),
        "gc-policy" => registry.add(gc::entry(description)),
        "scheduler" => registry.add(scheduler::entry(description)),
        other => unreachable!("no policy in Python is a {other}"),
    }
}

/// A parameter of a class: name, type, default as TOML.
type Declared = (String, String, Option<String>);

/// Registers `class` as entry `name` of `category`, in place of one registered before under that
/// name.
#[pyfunction]
pub fn register(
    py: Python<'_>,
    category: String,
    name: String,
    class_path: String,
    class: Py<PyAny>,
    summary: String,
    params: Vec<Declared>,
) -> PyResult<()> {
    let built_in = standard();
    if name == "python" || built_in.descriptions(&category).any(|entry| entry.name == name) {
        let message =
            format!("there is a built-in {category} called `{name}`; choose another name");
        return Err(failure::raise(py, "Error", message));
    }
    let description = describe(&name, &class_path, summary, params);
    let entry = RegisteredClass { category, class, description };
    let old = {
        let mut list = registered();
        let place =
            list.iter().position(|k| k.category == entry.category && k.description.name == name);
        match place {
            Some(at) => Some(std::mem::replace(&mut list[at], entry)),
            None => {
                list.push(entry);
                None
            }
        }
    };
    drop(old); // May run Python code, so only now that the lock is free.
    Ok(())
}

/// The description of a registered class, which lives as long as the program, like those of
/// built-in entries.
fn describe(name: &str, class_path: &str, summary: String, params: Vec<Declared>) -> Description {
    // The name alone: without a colon it cannot be taken for an import path.
    let mut list = vec![Param { default: Some(leak(format!("{name:?}"))), ..CLASS }];
    for (name, kind, default) in params {
        let kind = match kind.as_str() {
            "bool" => Kind::Flag,
            "int" => Kind::Count { min: 0, max: u64::MAX },
            "float" => Kind::Number { min: f64::MIN, max: f64::MAX },
            _ => Kind::Text,
        };
        let default = default.map(leak);
        let help = "A keyword argument of the Python class.";
        list.push(Param { default, ..Param::required(leak(name), kind, help) });
    }
    Description {
        name: leak(name.to_owned()),
        summary: leak(summary),
        origin: leak(format!("Python class {class_path}")),
        params: Box::leak(list.into_boxed_slice()),
    }
}

fn leak(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// Whether a policy of `scenario` is written in Python.
pub fn uses_python(scenario: &Scenario) -> bool {
    // No built-in policy has a parameter of this name.
    any_choice(scenario, &|choice| choice.settings.has("class"))
}

/// Whether a policy of `scenario` is a class registered in this process, which others do not have.
pub fn uses_registered(scenario: &Scenario) -> bool {
    let is_registered = |choice: &EntryChoice| {
        let class = field::<Option<String>>(&choice.settings, "class");
        class.is_some_and(|class| !class.contains(':'))
    };
    any_choice(scenario, &is_registered)
}

/// Whether `is` holds of an entry that `scenario` chooses.
fn any_choice(scenario: &Scenario, is: &dyn Fn(&EntryChoice) -> bool) -> bool {
    fn any(settings: &Settings, is: &dyn Fn(&EntryChoice) -> bool) -> bool {
        let chosen = |choice: &EntryChoice| is(choice) || any(&choice.settings, is);
        settings.iter().any(|(_, value)| match value {
            Value::Entry(choice) => chosen(choice),
            Value::Entries(choices) => choices.iter().any(chosen),
            Value::Table(table) => any(table, is),
            Value::Tables(tables) => tables.iter().any(|table| any(table, is)),
            _ => false,
        })
    }
    let components = scenario.components.iter().map(|component| &component.settings);
    components.chain([&scenario.host]).any(|settings| any(settings, is))
}

/// Makes an object of the class `settings` name with `arguments`; its other settings become keyword
/// arguments.
///
/// # Errors
/// A problem with `param`; the Python exception is kept as its cause.
fn construct<'py>(
    py: Python<'py>,
    category: &str,
    param: &'static str,
    settings: &Settings,
    arguments: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>>,
) -> Result<Py<PyAny>, Vec<Problem>> {
    let path = &field::<String>(settings, "class");
    let make = || -> PyResult<Py<PyAny>> {
        let arguments = arguments.into_pyobject(py).map_err(Into::into)?;
        let class = find_class(py, category, path)?;
        let keywords = keywords(py, settings)?;
        Ok(class.call(arguments, Some(&keywords))?.unbind())
    };
    make().map_err(|error| {
        let message = format!("{path}: {error}");
        // That is how a class refuses what it is built for; anything else is a mistake in it.
        if !error.is_instance_of::<PyValueError>(py) {
            failure::keep(error);
        }
        vec![Problem::new(param, message)]
    })
}

/// The class registered as `path`, or the one that is imported by it.
fn find_class<'py>(py: Python<'py>, category: &str, path: &str) -> PyResult<Bound<'py, PyAny>> {
    let class = {
        let list = registered();
        let found = list.iter().find(|it| it.category == category && it.description.name == path);
        found.map(|found| found.class.clone_ref(py))
    };
    match class {
        Some(class) => Ok(class.into_bound(py)),
        None => py.import("hybridsim.plugins")?.getattr("resolve")?.call1((category, path)),
    }
}

fn keywords<'py>(py: Python<'py>, settings: &Settings) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in settings.iter().filter(|(name, _)| !["class", "options"].contains(name)) {
        match value {
            Value::Count(count) => dict.set_item(name, count)?,
            Value::Number(number) => dict.set_item(name, number)?,
            Value::Flag(flag) => dict.set_item(name, flag)?,
            Value::Text(text) => dict.set_item(name, text)?,
            other => unreachable!("no Python class declares {other:?}"),
        }
    }
    if let Some(options) = field::<Option<String>>(settings, "options") {
        let parsed = py.import("json")?.getattr("loads")?.call1((options,))?;
        dict.update(parsed.cast::<PyDict>()?.as_mapping())?;
    }
    Ok(dict)
}

/// An error of a policy, in one line.
fn one_line(py: Python<'_>, class: &str, method: &str, error: &PyErr) -> String {
    let kind = error.get_type(py).name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    format!("{class}.{method} raised {kind}: {}", error.value(py))
}
