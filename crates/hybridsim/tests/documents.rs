//! What the documents say is true: paths and names exist, excerpts are code, commands run.

use hybridsim_config::param::Kind;
use hybridsim_config::registry::Registry;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders of the repository that a path in a document may begin with.
const FOLDERS: &[&str] =
    &["crates/", "docs/", "examples/", "papers/", "presets/", "python/", "scripts/", "tools/"];

const RUST_POLICY: &str = "docs/how-to/policy-rust.md";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All pages: those at the top of the repository and those below `docs`, relative to the root.
fn documents() -> Vec<PathBuf> {
    let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    let list = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(root().join(folder)).expect("a readable folder");
        entries.map(|entry| folder.join(entry.expect("a readable entry").file_name())).collect()
    };
    let mut pages: Vec<PathBuf> = list(Path::new("")).into_iter().filter(is_page).collect();
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for path in list(&folder) {
            match root().join(&path).is_dir() {
                true => folders.push(path),
                false => pages.extend(Some(path).filter(is_page)),
            }
        }
    }
    pages.sort();
    pages
}

/// The text of all sources below `folder`.
fn sources(folder: &Path) -> String {
    let mut all = String::new();
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            all += &sources(&path);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all += &fs::read_to_string(&path).expect("sources are text");
        }
    }
    all
}

/// The texts between backticks on one line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Fenced blocks of `language`, each with its indent taken away.
fn fenced(text: &str, language: &str) -> Vec<Vec<String>> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim_start() == format!("```{language}") {
            let indent = line.len() - line.trim_start().len();
            let body = lines.by_ref().take_while(|line| line.trim() != "```");
            blocks.push(body.map(|line| line.get(indent..).unwrap_or("").to_owned()).collect());
        }
    }
    blocks
}

/// Targets of relative links.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://") && !target.starts_with('#'))
}

#[test]
fn links_and_paths_lead_somewhere() {
    let mut seen = 0;
    let documents = documents();
    for page in ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "docs/reference/traces.md"] {
        assert!(documents.contains(&PathBuf::from(page)), "{page} was not found");
    }
    for document in &documents {
        let text = read(document);
        let folder = root().join(document).parent().expect("a folder").to_owned();
        let document = document.display();
        for target in links(&text) {
            let file = target.split('#').next().expect("split gives at least one");
            assert!(folder.join(file).exists(), "{document} links to {target}");
            seen += 1;
        }
        for path in text.lines().flat_map(quoted) {
            let whole = !path.contains([' ', '*', '<']);
            if whole && FOLDERS.iter().any(|folder| path.starts_with(folder)) {
                assert!(root().join(path).exists(), "{document} names {path}");
                seen += 1;
            }
        }
    }
    assert!(seen > 40, "only {seen} links and paths were found");
}

#[test]
fn the_table_of_extensions_names_what_exists() {
    let text = read("CONTRIBUTING.md");
    let code = sources(&root().join("crates"));
    let rows =
        text.lines().filter(|line| line.starts_with("| a") && line.matches('|').count() == 5);
    let mut kinds = 0;
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        for name in quoted(cells[3]) {
            let declared = ["trait", "struct"].iter().any(|word| {
                [" ", ":", "<", "\n"]
                    .iter()
                    .any(|end| code.contains(&format!("{word} {name}{end}")))
            });
            assert!(declared, "there is no trait or type {name}: {row}");
        }
        if let Some(list) = quoted(cells[4]).next() {
            let entry = quoted(cells[3]).last().expect("a listed thing has an entry type");
            let slice = format!("pub const ENTRIES: &[{entry}]");
            assert!(read(list).contains(&slice), "{list} has no `{slice}`: {row}");
        }
        kinds += 1;
    }
    assert!(kinds > 10, "only {kinds} rows were found");
}

#[test]
fn counts_in_prose_are_those_of_the_program() {
    let numbers = "zero one two three four five six seven eight nine ten eleven twelve thirteen \
                   fourteen fifteen sixteen seventeen eighteen nineteen twenty";
    let registry = hybridsim_simulation::registry::standard();
    let of = |category| registry.descriptions(category).count();
    let folder = fs::read_dir(root().join("workloads")).expect("a readable folder");
    let files = folder.map(|entry| entry.expect("a readable entry").path());
    let traces = files.filter(|path| path.extension().is_some_and(|it| it == "hst")).count();
    let counted = [
        ("flash translation layers", of("ftl")),
        ("garbage collection policies", of("gc-policy")),
        ("trace formats", of("trace-format")),
        ("recorded traces in `workloads/`", traces),
    ];
    let mut found = 0;
    for page in ["README.md", "docs/models/index.md"] {
        let text = read(page).split_whitespace().collect::<Vec<_>>().join(" ");
        for (noun, count) in counted {
            for (at, _) in text.match_indices(noun) {
                let mut before = text[..at].split_whitespace().rev();
                let word = before.next().unwrap_or_default();
                let Some(number) = numbers.split(' ').position(|it| it == word) else { continue };
                match before.next() {
                    Some("than") => assert!(count > number, "{page}: {word} {noun}, not {count}"),
                    _ => assert_eq!(number, count, "{page}: {word} {noun}"),
                }
                found += 1;
            }
        }
    }
    assert!(found >= 4, "only {found} counts");
}

/// Whether component `name`, or an entry that one of its parameters chooses, has a key `key`.
fn has_key(registry: &Registry, name: &str, key: &str) -> bool {
    let component = registry.descriptions("component").find(|entry| entry.name == name);
    let params = component.unwrap_or_else(|| panic!("there is no component {name}")).params;
    params.iter().any(|param| {
        let chosen = match param.kind {
            Kind::Entry(category) => registry.descriptions(category).collect(),
            _ => Vec::new(),
        };
        param.name == key || chosen.iter().any(|it| it.params.iter().any(|own| own.name == key))
    })
}

#[test]
fn the_table_of_caches_names_keys_that_each_cache_has() {
    let page = read("docs/how-to/which-cache.md");
    let (_, table) = page.split_once("## The same thing in each").expect("a table");
    let registry = hybridsim_simulation::registry::standard();
    let mut rows = table
        .lines()
        .filter(|line| line.starts_with('|') && !line.starts_with("|-"))
        .map(|line| line.trim_matches('|').split(" | ").collect::<Vec<_>>());
    let caches = rows.next().expect("a head");
    let mut keys = 0;
    for cells in rows {
        for (at, cell) in cells.iter().enumerate().skip(1) {
            let cell = if cell.trim() == "the same" { cells[at - 1] } else { cell };
            for key in quoted(cell) {
                let known = quoted(caches[at]).any(|name| has_key(&registry, name, key));
                assert!(known, "{} have no key `{key}`", caches[at]);
                keys += 1;
            }
        }
    }
    assert!(keys > 20, "only {keys} keys");
}

#[test]
fn excerpts_are_code() {
    let text = read(RUST_POLICY);
    let code = read("crates/flash/src/ftl/block.rs");
    let lines: Vec<&str> = code.lines().map(str::trim).collect();
    let blocks = fenced(&text, "rust");
    assert!(blocks.len() >= 3, "{blocks:?}");
    for block in blocks {
        let block: Vec<&str> = block.iter().map(|line| line.trim()).collect();
        let found = lines.windows(block.len()).any(|lines| lines == block);
        assert!(found, "block.rs does not have this any more:\n{}", block.join("\n"));
    }
}

#[test]
fn the_commands_of_a_policy_in_rust_run() {
    let text = read(RUST_POLICY);
    let commands: Vec<String> = fenced(&text, "sh").concat();
    assert!(commands.len() >= 3, "{commands:?}");
    for command in commands {
        let args = command
            .strip_prefix("cargo run -p hybridsim -- ")
            .unwrap_or_else(|| panic!("not a command of the program: {command}"));
        let output = Command::new(env!("CARGO_BIN_EXE_hybridsim"))
            .args(args.split_whitespace())
            .current_dir(root())
            .output()
            .expect("the program starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}\n{errors}");
        let printed = String::from_utf8_lossy(&output.stdout);
        let expected = if args.starts_with("run ") { "Write amplification" } else { "block" };
        assert!(printed.contains(expected), "{command}\n{printed}");
    }
}

/// The tutorial and the how-to pages whose commands need nothing but the program.
fn pages_with_commands() -> Vec<PathBuf> {
    let others = [RUST_POLICY, "docs/how-to/policy-python.md"];
    let mut pages = documents();
    pages.retain(|page| {
        let name = page.to_str().expect("UTF-8");
        let wanted = name == "docs/tutorial.md" || name.starts_with("docs/how-to/");
        wanted && !others.contains(&name) && read(page).contains("```sh")
    });
    pages
}

/// Writes what a page shows as `title="FILE"` into `folder`.
fn write_files(text: &str, folder: &Path) {
    for block in text.split("\n```").filter(|block| block.contains("title=\"")) {
        let (head, body) = block.split_once('\n').unwrap_or((block, ""));
        if let Some(name) = head.split("title=\"").nth(1).and_then(|rest| rest.split('"').next()) {
            fs::write(folder.join(name), body).expect("a writable folder");
        }
    }
}

/// Commands that take minutes as a page shows them, and what makes them shorter.
#[cfg(unix)]
const SHORTENED: [(&str, &str); 1] =
    [("hybridsim surrogate ", "--knots 40 --requests 1000 --validation 2 ")];

/// A printed line, with the same spaces whatever the widths of columns.
fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Runs all commands of every page as a reader would, in a new folder with the examples, and finds
/// each line that the page shows in what they print. `HYBRIDSIM_BLESS=1` puts new numbers in place
/// of old ones.
#[cfg(unix)]
#[test]
fn the_commands_of_the_manual_run_and_print_what_it_shows() {
    let bless = std::env::var_os("HYBRIDSIM_BLESS").is_some();
    let cache = tempfile::tempdir().expect("a temporary folder");
    let pages = pages_with_commands();
    assert!(pages.len() >= 6, "{pages:?}");
    for page in pages {
        let mut text = read(&page);
        let printed = run_page(&page, &text, cache.path());
        let lines: Vec<String> = printed.lines().map(words).collect();
        let page = page.display();
        for shown in fenced(&text.clone(), "text").concat() {
            let wanted = words(&shown);
            if wanted.is_empty() || wanted.starts_with("pip ") || lines.contains(&wanted) {
                continue;
            }
            // The same row of the table, which begins with its name.
            let name = shown.trim_start().split("  ").next().unwrap_or_default();
            let columns = wanted.split(' ').count();
            let like = |line: &&str| {
                line.trim_start().split("  ").next() == Some(name)
                    && line.split_whitespace().count() == columns
            };
            let rows: Vec<&str> = printed.lines().filter(like).collect();
            match rows.as_slice() {
                [row] if bless => text = text.replacen(&shown, row, 1),
                rows => panic!("{page}: not printed: {shown}\nlike it: {rows:#?}"),
            }
        }
        if bless {
            fs::write(root().join(page.to_string()), text).expect("a writable page");
        }
    }
}

/// Runs the commands of a page with the shell; returns what they print.
#[cfg(unix)]
fn run_page(page: &Path, text: &str, cache: &Path) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = Path::new(env!("CARGO_BIN_EXE_hybridsim"));
    let mut search = std::ffi::OsString::from(program.parent().expect("its folder"));
    search.push(":/usr/bin:/bin");
    let mut commands = fenced(text, "sh").concat().join("\n");
    if !commands.contains("hybridsim examples") {
        commands = format!("hybridsim examples .\n{commands}");
    }
    for (command, options) in SHORTENED {
        commands = commands.replace(command, &format!("{command}{options}"));
    }
    write_files(text, folder.path());
    let output = Command::new("sh")
        .args(["-ec", &commands])
        .current_dir(folder.path())
        .env("PATH", search)
        .env("HYBRIDSIM_CACHE", cache)
        .output()
        .expect("a shell");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}:\n{commands}\n{errors}", page.display());
    String::from_utf8(output.stdout).expect("output is UTF-8")
}
