# The command without Python. scripts/recipes.sh fills in the release.
class Hybridsim < Formula
  desc "Simulator for storage that mixes hard disks, NAND flash, and hybrids of them"
  homepage "@HOMEPAGE@"
  url "@URL@"
  sha256 "@SHA256@"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on "rust" => :build

  def install
    system "cargo", "install", *std_cargo_args(path: "crates/hybridsim")
    generate_completions_from_executable(bin/"hybridsim", "completions")
    system bin/"hybridsim", "man", buildpath/"man"
    man1.install Dir["man/*.1"]
  end

  test do
    system bin/"hybridsim", "examples", testpath
    system bin/"hybridsim", "run", testpath/"examples/ssd.toml", "--out", testpath/"out", "--progress", "never"
    assert_path_exists testpath/"out/report.html"
  end
end
