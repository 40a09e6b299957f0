// Common to all pages: light and dark theme, list of sections, drawing status.
const fragment = new URLSearchParams(location.hash.slice(1));

// For pictures in documents: with `only=cdf,parts` in the fragment the page has these figures alone.
function only() {
  const wanted = (fragment.get("only") || "").split(",").filter(Boolean);
  if (wanted.length === 0) return;
  document.body.classList.add("only");
  wanted.forEach(id => {
    const figure = document.getElementById(id);
    if (!figure) return;
    figure.classList.add("wanted");
    figure.closest("section").classList.add("wanted");
  });
}

const isDark = () => document.documentElement.dataset.theme === "dark";

// Calls `themed` when the colours have changed.
function theme(themed) {
  const button = document.getElementById("theme"), wanted = matchMedia("(prefers-color-scheme: dark)");
  const asked = fragment.get("theme");
  const set = dark => {
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    button.textContent = dark ? "Light" : "Dark";
  };
  const change = dark => {
    set(dark);
    themed();
    charts.forEach(chart => chart.redraw());
  };
  set(asked ? asked === "dark" : wanted.matches);
  button.addEventListener("click", () => change(!isDark()));
  wanted.addEventListener("change", event => change(event.matches));
}

function navigation() {
  const list = document.getElementById("sections");
  document.querySelectorAll("section[data-title]").forEach(part => {
    list.append(element("li", {}, element("a", { href: "#" + part.id }, part.dataset.title)));
  });
}

// Reports, to tests and screen readers, whether every chart has been drawn.
function report() {
  only();
  let drawn = 0;
  charts.forEach(chart => {
    const done = chart.inked();
    chart.figure.dataset.drawn = done ? "yes" : "no";
    drawn += done ? 1 : 0;
  });
  document.documentElement.dataset.charts = `${drawn} of ${charts.length}`;
  document.documentElement.dataset.width = `${document.documentElement.scrollWidth} of ${document.documentElement.clientWidth}`;
  document.getElementById("status").textContent = `${drawn} of ${charts.length} charts drawn`;
}

window.addEventListener("error", event => { document.documentElement.dataset.error = event.message; });
