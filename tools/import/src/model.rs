//! The machine a parameter file describes: components, how they hang together, and the rest.

use crate::parse::{Reading, names_between};
use crate::source::{Place, Trouble, quote};
use crate::syntax::{Block, Item, Node, Statement, Value};
use std::collections::BTreeMap;

/// DiskSim's `component parameter value` on its command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// A component, `first .. last`, or a prefix and `*`.
    pub component: String,
    /// A parameter; one of an inner block as `Block:Parameter`.
    pub parameter: String,
    /// The value, written as in a file.
    pub value: String,
}

/// Everything a parameter file says, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    /// All named blocks in order, inherited values filled in.
    pub blocks: Vec<Block>,
    /// Component to block.
    pub instances: BTreeMap<String, Block>,
    pub topology: Option<Node>,
}

/// A component cannot be laid over more than this many others.
const COMPONENTS_MAX: usize = 100_000;

impl Model {
    pub fn read(statements: Vec<Statement>) -> Result<Self, Trouble> {
        let mut model = Self::default();
        for statement in statements {
            match statement {
                Statement::Block(block) => model.define(block)?,
                Statement::Instantiate { place, names, spec } => {
                    model.instantiate(place, names, &spec)?;
                }
                Statement::Topology(node) if model.topology.is_none() => {
                    model.topology = Some(node);
                }
                Statement::Topology(node) => {
                    return Err(Trouble::new(node.place, "a second topology; there can be one"));
                }
            }
        }
        Ok(model)
    }

    /// A block may start from an earlier one, named behind a colon or in the place of its kind.
    fn define(&mut self, block: Block) -> Result<(), Trouble> {
        let parent = match &block.parent {
            Some(parent) => Some(self.find(parent).ok_or_else(|| {
                let message = format!("there is no block {} to start from", quote(parent));
                Trouble::new(block.place, message)
            })?),
            None => self.find(&block.kind),
        };
        let block = match parent {
            Some(parent) => block.over(parent),
            None => block,
        };
        self.blocks.retain(|other| other.name != block.name || block.name.is_empty());
        self.blocks.push(block);
        Ok(())
    }

    fn find(&self, name: &str) -> Option<&Block> {
        self.blocks.iter().find(|block| block.name == name)
    }

    fn instantiate(
        &mut self,
        place: Place,
        names: Vec<(String, Place)>,
        spec: &str,
    ) -> Result<(), Trouble> {
        let block = self.find(spec).cloned().ok_or_else(|| {
            Trouble::new(place, format!("there is no block {} to instantiate", quote(spec)))
        })?;
        // Copies of a block with a large layout would fill the memory.
        let size = block.weight();
        for (name, at) in names {
            if self.instances.len() >= COMPONENTS_MAX
                || self.instances.len().saturating_mul(size) > 50_000_000
            {
                return Err(Trouble::new(at, "too many components for one scenario"));
            }
            if self.instances.insert(name.clone(), block.clone()).is_some() {
                let message = format!("{} is instantiated twice", quote(&name));
                return Err(Trouble::new(at, message));
            }
        }
        Ok(())
    }

    /// The blocks of one kind: instances if there are any, else what is defined.
    pub fn of_kind(&self, kind: &str) -> Vec<&Block> {
        self.blocks.iter().filter(|block| block.kind == kind).collect()
    }

    /// Changes parameters of components.
    pub fn apply(&mut self, over: &Override, reading: &mut Reading<'_>) -> Result<(), Trouble> {
        let shown = format!("override of {} {}", over.component, over.parameter);
        let item = reading.value(&over.value, &shown)?;
        let nowhere = |message: String| Trouble::nowhere(format!("{shown}: {message}"));
        let wanted = over.component.trim();
        let names: Vec<String> = match (wanted.split_once(".."), wanted.strip_suffix('*')) {
            (Some((first, last)), _) => {
                names_between(first.trim(), last.trim()).map_err(&nowhere)?
            }
            (_, Some(prefix)) => {
                self.instances.keys().filter(|name| name.starts_with(prefix)).cloned().collect()
            }
            _ => vec![wanted.to_owned()],
        };
        if names.is_empty() {
            return Err(nowhere("no component has such a name".to_owned()));
        }
        for name in names {
            let block = match self.instances.get_mut(&name) {
                Some(block) => Some(block),
                None => self.blocks.iter_mut().find(|block| block.name == name),
            };
            let Some(block) = block else {
                return Err(nowhere(format!("there is no component {}", quote(&name))));
            };
            replace(block, &over.parameter, &item).map_err(&nowhere)?;
        }
        Ok(())
    }
}

/// Sets `path`, such as `Scheduler:Scheduling policy`.
fn replace(block: &mut Block, path: &str, item: &Item) -> Result<(), String> {
    let Some((outer, inner)) = path.split_once(':') else {
        block.set(path.trim(), item.place, item.clone());
        return Ok(());
    };
    let entry = block.entries.iter_mut().find(|entry| entry.key == outer.trim());
    match entry.map(|entry| &mut entry.item.value) {
        Some(Value::Block(within)) => replace(within, inner, item),
        _ => Err(format!("there is no inner block {}", quote(outer.trim()))),
    }
}

impl Block {
    /// About how many values it holds.
    pub fn weight(&self) -> usize {
        fn of(item: &Item) -> usize {
            match &item.value {
                Value::List(items) => 1 + items.iter().map(of).sum::<usize>(),
                Value::Block(block) => block.weight(),
                _ => 1,
            }
        }
        1 + self.entries.iter().map(|entry| of(&entry.item)).sum::<usize>()
    }
}
