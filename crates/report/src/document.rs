//! The frame of every page: one self-contained HTML file with its styles, scripts and data.
//!
//! The content security policy allows scripts and styles by hash only and no loading, so a string
//! that was not escaped could neither execute nor load anything.

use base64::prelude::{BASE64_STANDARD, Engine};
use minijinja::{AutoEscape, Environment, Value, context};
use serde::Serialize;
use sha2::{Digest, Sha256};

const FRAME: &str = include_str!("../assets/frame.html");
const LICENCE: &str = include_str!("../assets/uplot-LICENSE");
const STYLES: [&str; 2] =
    [include_str!("../assets/uplot-1.6.32.min.css"), include_str!("../assets/page.css")];
const SCRIPTS: [&str; 2] =
    [include_str!("../assets/uplot-1.6.32.min.js"), include_str!("../assets/units.js")];

pub(crate) struct Document<'a> {
    /// The template, which extends `frame`.
    pub template: &'a str,
    /// Styles beside those of all pages.
    pub styles: &'a [&'a str],
    /// Scripts after those of all pages.
    pub scripts: &'a [&'a str],
}

impl Document<'_> {
    /// The page, with `content` for the template and `data` for the scripts.
    ///
    /// # Panics
    /// Never for any content: the templates are fixed and tested.
    pub fn render(&self, title: &str, content: Value, data: &impl Serialize) -> String {
        let script = [&SCRIPTS, self.scripts].concat().join("\n");
        let style = [&STYLES, self.styles].concat().join("\n");
        let mut environment = Environment::new();
        environment.set_auto_escape_callback(|_| AutoEscape::Html);
        environment.add_template("frame", FRAME).expect("the template is fixed and tested");
        environment.add_template("page", self.template).expect("the template is fixed and tested");
        let page = environment.get_template("page").expect("it was just added").render(context! {
            title => title,
            licence => LICENCE,
            policy => policy(&script, &style),
            script => Value::from_safe_string(script),
            style => Value::from_safe_string(style),
            data => Value::from_safe_string(embed(data)),
            ..content
        });
        page.expect("the template uses only what it is given")
    }
}

/// `value` as JSON that is safe inside a script element: it contains no `<`.
fn embed(value: &impl Serialize) -> String {
    let json = serde_json::to_string(value).expect("only plain values are shown");
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn policy(script: &str, style: &str) -> String {
    let hash = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; \
         base-uri 'none'; form-action 'none'",
        hash(script),
        hash(style)
    )
}
