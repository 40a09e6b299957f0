//! The conformance suite of replacement policies: random operations of a cache, of which each
//! failure is reported with few of them.

use crate::replacement::{Access, CachedPage, Replacement, ReplacementEntry};
use hybridsim_config::param::Settings;
use hybridsim_config::registry::Registry;
use hybridsim_engine::Stream;
use std::fmt;

/// Features that the cases covered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Cases.
    pub ran: u32,
    /// Accesses, additions included.
    pub accesses: u64,
    /// Victims returned.
    pub victims: u64,
}

/// An operation on a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The page is read, or added if it is not cached.
    Read(u64),
    /// The page is written, or added if it is not cached.
    Write(u64),
    /// The page is trimmed.
    Remove(u64),
    /// So many victims are asked for, of which pages `number` with `number % 3 == except` are not
    /// eligible, and evicted if `evict` is set; `expect` is about to be added.
    Victims {
        /// Number of victims.
        count: usize,
        /// Which pages are not eligible.
        except: u64,
        /// Whether they are evicted.
        evict: bool,
        /// The page announced.
        expect: u64,
    },
}

/// A violation of the interface of [`Replacement`].
#[derive(Clone, Debug)]
pub struct Violation {
    /// The violated rule.
    pub message: String,
    /// Size of the cache in pages.
    pub pages: u32,
    /// The operations up to the violation.
    pub steps: Vec<Step>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { message, pages, steps } = self;
        let count = steps.len();
        write!(f, "{message}\non a cache of {pages} pages, after {count} operations: {steps:?}")
    }
}

/// Runs `cases` random sequences of operations on the policy of `entry`. `registry` reports the
/// errors of policies in other languages.
///
/// # Errors
/// The first violation, with as few operations as were found to cause it.
pub fn check(
    entry: &ReplacementEntry,
    settings: &Settings,
    registry: &Registry,
    cases: u32,
    seed: u64,
) -> Result<Coverage, Violation> {
    let mut coverage = Coverage::default();
    for case in 0..cases {
        let mut stream = Stream::new(seed, &format!("replacement/{case}"));
        let pages = 1 + stream.below(24) as u32;
        let count = 1 + stream.below(400) as usize;
        let steps: Vec<Step> = (0..count).map(|_| draw(&mut stream, pages)).collect();
        let mut run = |steps: &[Step]| play(entry, settings, registry, pages, steps);
        match run(&steps) {
            Ok(covered) => {
                coverage.ran += 1;
                coverage.accesses += covered.accesses;
                coverage.victims += covered.victims;
            }
            Err((_, at)) => return Err(shrink(&mut run, pages, steps[..=at].to_vec())),
        }
    }
    Ok(coverage)
}

fn draw(stream: &mut Stream, pages: u32) -> Step {
    let page = stream.below(u64::from(pages) * 5 / 2 + 1);
    match stream.below(8) {
        0..=2 => Step::Read(page),
        3..=4 => Step::Write(page),
        5 => Step::Remove(page),
        _ => Step::Victims {
            count: stream.below(u64::from(pages) + 4) as usize,
            except: stream.below(4),
            evict: stream.chance(0.5),
            expect: page,
        },
    }
}

/// Features that a sequence covered, or the message and the step of its violation.
type Played = Result<Coverage, (String, usize)>;

/// Drops operations as long as a violation remains.
fn shrink(run: &mut dyn FnMut(&[Step]) -> Played, pages: u32, steps: Vec<Step>) -> Violation {
    let mut steps = steps;
    for at in (0..steps.len()).rev() {
        let mut fewer = steps.clone();
        fewer.remove(at);
        if run(&fewer).is_err() {
            steps = fewer;
        }
    }
    let message = run(&steps).err().map_or_else(String::new, |(message, _)| message);
    Violation { message, pages, steps }
}

/// A cache as a policy sees it.
struct Cache {
    policy: Box<dyn Replacement>,
    cached: Vec<CachedPage>,
    free: Vec<u32>,
    covered: Coverage,
}

fn play(
    entry: &ReplacementEntry,
    settings: &Settings,
    registry: &Registry,
    pages: u32,
    steps: &[Step],
) -> Played {
    let policy = (entry.build)(settings, pages).map_err(|problems| {
        let list: Vec<String> = problems.iter().map(ToString::to_string).collect();
        (registry.take_plugin_error().unwrap_or_else(|| list.join("; ")), 0)
    })?;
    let free = (0..pages).collect();
    let mut cache = Cache { policy, cached: Vec::new(), free, covered: Coverage::default() };
    for (at, step) in steps.iter().enumerate() {
        let done = cache.step(*step);
        // An error of the policy itself is the cause of whatever it led to.
        match registry.take_plugin_error() {
            Some(error) => return Err((error, at)),
            None => done.map_err(|message| (message, at))?,
        }
    }
    Ok(cache.covered)
}

impl Cache {
    fn find(&self, page: u64) -> Option<usize> {
        self.cached.iter().position(|cached| cached.page == page)
    }

    fn step(&mut self, step: Step) -> Result<(), String> {
        match step {
            Step::Read(page) => self.access(page, Access::Read),
            Step::Write(page) => self.access(page, Access::Write),
            Step::Remove(page) => {
                if let Some(at) = self.find(page) {
                    let page = self.cached.swap_remove(at);
                    self.policy.remove(page);
                    self.free.push(page.slot);
                }
            }
            Step::Victims { count, except, evict, expect } => {
                if self.find(expect).is_none() {
                    self.policy.expect(expect);
                }
                return self.victims(count, except, evict);
            }
        }
        Ok(())
    }

    fn access(&mut self, page: u64, access: Access) {
        self.covered.accesses += 1;
        match self.find(page) {
            Some(at) => self.policy.update(self.cached[at], access),
            None => {
                let Some(slot) = self.free.pop() else { return };
                let page = CachedPage { page, slot };
                self.cached.push(page);
                self.policy.update(page, Access::Add);
            }
        }
    }

    fn victims(&mut self, count: usize, except: u64, evict: bool) -> Result<(), String> {
        let eligible = |page: CachedPage| page.page % 3 != except;
        // What is in the list already has to stay there.
        let other = CachedPage { page: u64::MAX, slot: u32::MAX };
        let mut out = vec![other];
        self.policy.victims(count, &eligible, &mut out);
        if out.first() != Some(&other) {
            return Err("the list of victims was replaced instead of continued".to_owned());
        }
        let out = &out[1..];
        let evictable = self.cached.iter().filter(|page| eligible(**page)).count();
        let (found, wanted) = (out.len(), count.min(evictable));
        if found != wanted {
            return Err(format!(
                "{found} victims were returned, expected {wanted}: {count} were asked for, and \
                 {evictable} of {} cached pages are eligible",
                self.cached.len()
            ));
        }
        for (at, page) in out.iter().enumerate() {
            if !self.cached.contains(page) || !eligible(*page) {
                return Err(format!("victim {} is not cached, or not eligible", page.page));
            }
            if out[..at].contains(page) {
                return Err(format!("victim {} was returned twice", page.page));
            }
        }
        self.covered.victims += found as u64;
        if evict {
            for page in out {
                self.cached.retain(|cached| cached != page);
                self.policy.evict(*page);
                self.free.push(page.slot);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replacement::Eligible;
    use crate::replacement::{ENTRIES, lru};
    use hybridsim_config::registry::Description;
    use serde::{Deserialize, Serialize};

    #[test]
    fn built_in_policies_conform() {
        for entry in ENTRIES {
            let name = entry.description.name;
            let found = check(entry, &Settings::default(), &Registry::default(), 200, 1);
            let coverage = found.unwrap_or_else(|violation| panic!("{name}: {violation}"));
            assert_eq!(coverage.ran, 200);
            assert!(coverage.victims > 1000, "{name}: {coverage:?}");
        }
    }

    /// Returns at most one victim.
    #[derive(Default, Serialize, Deserialize)]
    struct Stingy(Vec<CachedPage>);

    impl Replacement for Stingy {
        fn update(&mut self, page: CachedPage, _access: Access) {
            self.remove(page);
            self.0.push(page);
        }

        fn remove(&mut self, page: CachedPage) {
            self.0.retain(|other| *other != page);
        }

        fn victims(&mut self, count: usize, eligible: Eligible<'_>, out: &mut Vec<CachedPage>) {
            out.extend(self.0.iter().copied().filter(|it| eligible(*it)).take(count.min(1)));
        }
    }

    #[test]
    fn a_violation_comes_with_few_operations() {
        let description =
            Description { name: "stingy", summary: "", origin: "", ..lru::ENTRY.description };
        let entry = ReplacementEntry { description, build: |_, _| Ok(Box::new(Stingy::default())) };
        let found = check(&entry, &Settings::default(), &Registry::default(), 50, 1);
        let violation = found.expect_err("one victim where two were asked for");
        assert!(violation.message.contains("1 victims were returned, expected 2"), "{violation}");
        assert_eq!(violation.steps.len(), 3, "{violation}");
    }
}
