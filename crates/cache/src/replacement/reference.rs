//! The policies as their papers describe them, in vectors, to compare the others with.

use super::counting::{CountingCache, PageAccess};
use super::{Access, ENTRIES};
use hybridsim_config::param::Settings;
use hybridsim_engine::Stream;
use hybridsim_engine::sample::Zipf;

type Pages = Vec<u64>;

/// Removes a page; returns whether it was there.
fn take(list: &mut Pages, page: u64) -> bool {
    let at = list.iter().position(|other| *other == page);
    at.map(|at| list.remove(at)).is_some()
}

/// A cache of a number of pages: accesses a page, and returns whether it missed.
type Model = Box<dyn FnMut(u64) -> bool>;

/// One queue, oldest first. `used` is called for each hit, `evict` removes a page.
fn queue<S: 'static>(
    pages: usize,
    mut state: S,
    used: fn(&mut S, &mut Pages, u64),
    evict: fn(&mut S, &mut Pages),
) -> Model {
    let mut queue = Vec::new();
    Box::new(move |page| {
        if queue.contains(&page) {
            used(&mut state, &mut queue, page);
            return false;
        }
        if queue.len() == pages {
            evict(&mut state, &mut queue);
        }
        queue.push(page);
        true
    })
}

fn oldest<S>(_: &mut S, queue: &mut Pages) {
    queue.remove(0);
}

fn renew(_: &mut (), queue: &mut Pages, page: u64) {
    take(queue, page);
    queue.push(page);
}

fn clock(referenced: &mut Pages, queue: &mut Pages) {
    while take(referenced, queue[0]) {
        queue.rotate_left(1);
    }
    queue.remove(0);
}

fn refer(referenced: &mut Pages, page: u64) {
    take(referenced, page);
    referenced.push(page);
}

fn sieve((hand, referenced): &mut (usize, Pages), queue: &mut Pages) {
    while take(referenced, queue[*hand]) {
        *hand = (*hand + 1) % queue.len();
    }
    queue.remove(*hand);
    if *hand == queue.len() {
        *hand = 0;
    }
}

fn two_queue(pages: usize) -> Model {
    let (mut fresh, mut kept, mut left) = (Vec::new(), Vec::new(), Vec::new());
    Box::new(move |page| {
        if take(&mut kept, page) {
            kept.push(page);
            return false;
        }
        if fresh.contains(&page) {
            return false;
        }
        if fresh.len() + kept.len() == pages {
            if fresh.len() > (pages / 4).max(1) || kept.is_empty() {
                left.push(fresh.remove(0));
                if left.len() > (pages / 2).max(1) {
                    left.remove(0);
                }
            } else {
                kept.remove(0);
            }
        }
        if take(&mut left, page) {
            kept.push(page)
        } else {
            fresh.push(page)
        }
        true
    })
}

fn s3_fifo(pages: usize) -> Model {
    let (mut small, mut main, mut left) =
        (Vec::<(u64, u8)>::new(), Vec::<(u64, u8)>::new(), vec![]);
    Box::new(move |page| {
        if let Some((_, uses)) = small.iter_mut().chain(&mut main).find(|(it, _)| *it == page) {
            *uses = (*uses + 1).min(3);
            return false;
        }
        let mut full = small.len() + main.len() == pages;
        while full {
            if small.len() > (pages / 10).max(1) || main.is_empty() {
                let (oldest, uses) = small.remove(0);
                if uses > 1 && small.len() >= (pages / 10).max(1) {
                    main.push((oldest, 0));
                    continue;
                }
                left.push(oldest);
                if left.len() > pages {
                    left.remove(0);
                }
                full = false;
            } else {
                let (oldest, uses) = main.remove(0);
                full = uses > 0;
                if full {
                    main.push((oldest, uses - 1));
                }
            }
        }
        if take(&mut left, page) {
            main.push((page, 0))
        } else {
            small.push((page, 0))
        }
        true
    })
}

/// Figure 4 of the paper.
#[derive(Default)]
struct Arc {
    t1: Pages,
    t2: Pages,
    b1: Pages,
    b2: Pages,
    p: f64,
}

impl Arc {
    fn replace(&mut self, in_b2: bool) {
        let t1 = self.t1.len() as f64;
        if t1 >= 1.0 && ((in_b2 && t1 == self.p) || t1 > self.p) {
            self.b1.push(self.t1.remove(0));
        } else {
            self.b2.push(self.t2.remove(0));
        }
    }

    fn access(&mut self, c: usize, page: u64) -> bool {
        if take(&mut self.t1, page) || take(&mut self.t2, page) {
            self.t2.push(page);
            return false;
        }
        let (b1, b2) = (self.b1.len() as f64, self.b2.len() as f64);
        let [l1, l2] = [self.t1.len() + self.b1.len(), self.t2.len() + self.b2.len()];
        if self.b1.contains(&page) {
            self.p = (self.p + (b2 / b1).max(1.0)).min(c as f64);
            self.replace(false);
            take(&mut self.b1, page);
            self.t2.push(page);
            return true;
        }
        if self.b2.contains(&page) {
            self.p = (self.p - (b1 / b2).max(1.0)).max(0.0);
            self.replace(true);
            take(&mut self.b2, page);
            self.t2.push(page);
            return true;
        }
        if l1 == c {
            if self.t1.len() < c {
                self.b1.remove(0);
                self.replace(false);
            } else {
                self.t1.remove(0);
            }
        } else if l1 + l2 >= c {
            if l1 + l2 == 2 * c {
                self.b2.remove(0);
            }
            self.replace(false);
        }
        self.t1.push(page);
        true
    }
}

fn model(name: &str, pages: usize) -> Option<Model> {
    Some(match name {
        "lru" => queue(pages, (), renew, oldest),
        "fifo" => queue(pages, (), |_, _, _| {}, oldest),
        "clock" => queue(pages, Pages::new(), |referenced, _, page| refer(referenced, page), clock),
        "sieve" => {
            queue(pages, (0, Pages::new()), |state, _, page| refer(&mut state.1, page), sieve)
        }
        "2q" => two_queue(pages),
        "s3-fifo" => s3_fifo(pages),
        "arc" => {
            let mut arc = Arc::default();
            Box::new(move |page| arc.access(pages, page))
        }
        _ => return None,
    })
}

#[test]
fn policies_decide_as_in_their_papers() {
    let (zipf, mut stream) = (Zipf::new(400, 0.7), Stream::new(1, "reference"));
    let mut trace: Pages = Vec::new();
    for scan in 0..10 {
        trace.extend((0..600).map(|_| zipf.draw(&mut stream)));
        trace.extend((1000 + 40 * scan..).take(80));
        trace.extend((0..90).map(|at| 5000 + at % 45));
    }
    let accesses: Vec<PageAccess> =
        trace.iter().map(|page| PageAccess::new(*page, Access::Read)).collect();
    let mut compared = 0;
    for entry in ENTRIES {
        let name = entry.description.name;
        for pages in [1, 2, 3, 10, 41, 150] {
            let Some(mut model) = model(name, pages as usize) else { continue };
            let policy = (entry.build)(&Settings::default(), pages).expect("no parameters");
            let mut cache = CountingCache::new(policy, pages);
            for (at, (page, access)) in trace.iter().zip(&accesses).enumerate() {
                let missed = !cache.process(std::slice::from_ref(access)).is_empty();
                assert_eq!(missed, model(*page), "{name}, {pages} pages, access {at}");
            }
            compared += 1;
        }
    }
    assert_eq!(compared, 42);
}
