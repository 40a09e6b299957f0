//! The model in a parameter file: blocks, component instances and topology.

use crate::parse::{SourceReader, names_between};
use crate::source::{LocatedError, Result, SourceLocation, quote};
use crate::syntax::{Block, Item, Statement, TopologyNode, Value};
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

/// The blocks, instances and topology of a parameter file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    /// All named blocks in order, inherited values filled in.
    pub blocks: Vec<Block>,
    /// Component to block.
    pub instances: BTreeMap<String, Block>,
    pub topology: Option<TopologyNode>,
}

const COMPONENTS_MAX: usize = 100_000;

impl Model {
    pub fn read(statements: Vec<Statement>) -> Result<Self> {
        let mut model = Self::default();
        for statement in statements {
            match statement {
                Statement::Block(block) => model.define(block)?,
                Statement::Instantiate { location, names, spec } => {
                    model.instantiate(location, names, &spec)?;
                }
                Statement::Topology(node) if model.topology.is_none() => {
                    model.topology = Some(node);
                }
                Statement::Topology(node) => {
                    return Err(LocatedError::new(
                        node.location,
                        "a second topology; only one is allowed",
                    ));
                }
            }
        }
        Ok(model)
    }

    /// A block may start from an earlier one, named behind a colon or in the location of its kind.
    fn define(&mut self, block: Block) -> Result<()> {
        let parent = match &block.parent {
            Some(parent) => Some(self.find(parent).ok_or_else(|| {
                let message = format!("there is no block {} to start from", quote(parent));
                LocatedError::new(block.location, message)
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
        location: SourceLocation,
        names: Vec<(String, SourceLocation)>,
        spec: &str,
    ) -> Result<()> {
        let block = self.find(spec).cloned().ok_or_else(|| {
            LocatedError::new(location, format!("there is no block {} to instantiate", quote(spec)))
        })?;
        // Bounds the memory for copies of a block with a large layout.
        let size = block.weight();
        for (name, at) in names {
            if self.instances.len() >= COMPONENTS_MAX
                || self.instances.len().saturating_mul(size) > 50_000_000
            {
                return Err(LocatedError::new(at, "too many components for one scenario"));
            }
            if self.instances.insert(name.clone(), block.clone()).is_some() {
                let message = format!("{} is instantiated twice", quote(&name));
                return Err(LocatedError::new(at, message));
            }
        }
        Ok(())
    }

    /// The defined blocks of one kind.
    pub fn of_kind(&self, kind: &str) -> Vec<&Block> {
        self.blocks.iter().filter(|block| block.kind == kind).collect()
    }

    /// Changes parameters of components.
    pub fn apply(&mut self, over: &Override, reading: &mut SourceReader<'_>) -> Result<()> {
        let shown = format!("override of {} {}", over.component, over.parameter);
        let item = reading.value(&over.value, &shown)?;
        let error = |message: String| LocatedError::nowhere(format!("{shown}: {message}"));
        let wanted = over.component.trim();
        if let Some(drive) = self.only_drive(wanted) {
            return replace(drive, &over.parameter, &item).map_err(&error);
        }
        let names: Vec<String> = match (wanted.split_once(".."), wanted.strip_suffix('*')) {
            (Some((first, last)), _) => names_between(first.trim(), last.trim()).map_err(&error)?,
            (_, Some(prefix)) => {
                self.instances.keys().filter(|name| name.starts_with(prefix)).cloned().collect()
            }
            _ => vec![wanted.to_owned()],
        };
        if names.is_empty() {
            return Err(error("no component has such a name".to_owned()));
        }
        for name in names {
            let block = match self.instances.get_mut(&name) {
                Some(block) => Some(block),
                None => self.blocks.iter_mut().find(|block| block.name == name),
            };
            let Some(block) = block else {
                return Err(error(format!("there is no component {}", quote(&name))));
            };
            replace(block, &over.parameter, &item).map_err(&error)?;
        }
        Ok(())
    }
}

impl Model {
    /// The drive that a file without instances describes, if `wanted` stands for drives (`disk0`,
    /// `disk*`, `disk0 .. disk5`) and is no block: the same overrides fit it and its `.parv` file.
    fn only_drive(&mut self, wanted: &str) -> Option<&mut Block> {
        let named = self.blocks.iter().any(|block| block.name == wanted);
        if named || !wanted.starts_with("disk") || !self.instances.is_empty() {
            return None;
        }
        let mut drives = self.blocks.iter_mut().filter(|block| block.kind == "disksim_disk");
        drives.next().filter(|_| drives.next().is_none())
    }
}

/// Sets `path`, such as `Scheduler:Scheduling policy`.
fn replace(block: &mut Block, path: &str, item: &Item) -> Result<(), String> {
    let Some((outer, inner)) = path.split_once(':') else {
        block.set(path.trim(), item.location, item.clone());
        return Ok(());
    };
    let entry = block.entries.iter_mut().find(|entry| entry.key == outer.trim());
    match entry.map(|entry| &mut entry.item.value) {
        Some(Value::Block(within)) => replace(within, inner, item),
        _ => Err(format!("there is no inner block {}", quote(outer.trim()))),
    }
}

impl Block {
    /// The approximate number of values in it.
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
