"""Make a web site for the browser workload: pages with pictures, which store data and lead on."""

import argparse
import os
import random
import struct
import zlib

PAGE = """<!doctype html><meta charset="utf-8"><title>Page {number}</title>
<h1>Page {number}</h1>
{pictures}
<p>{text}</p>
<script>
localStorage.setItem("page{number}", "{text}".slice(0, 500));
document.cookie = "page{number}=" + Date.now() + ";max-age=100000";
const opening = indexedDB.open("pages", 1);
opening.onupgradeneeded = () => opening.result.createObjectStore("page");
opening.onsuccess = () => {{
    const store = opening.result.transaction("page", "readwrite").objectStore("page");
    store.put(crypto.getRandomValues(new Uint8Array({stored})), {number});
}};
onload = () => setTimeout(() => location.href = "{following}.html", {stay_ms});
</script>
"""


def picture(rng):
    """A PNG of noise, 10 to 500 KB: noise does not compress, so its size is known."""
    size = int(10_000 * 50 ** rng.random())
    width = int((size / 3) ** 0.5)
    rows = b"".join(b"\0" + rng.randbytes(3 * width) for _ in range(width))

    def chunk(kind, data):
        checksum = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)

    header = struct.pack(">IIBBBBB", width, width, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows, 1))
        + chunk(b"IEND", b"")
    )


def page(number, pages, names, rng):
    return PAGE.format(
        number=number,
        pictures="\n".join(f'<img src="{name}">' for name in names),
        text="".join(rng.choice("abcdefghij     ") for _ in range(rng.randrange(2_000, 20_000))),
        stored=rng.randrange(1_000, 60_000),
        following=(number + 1) % pages,
        stay_ms=rng.randrange(100, 600),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--pages", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    os.makedirs(options.folder)
    for number in range(options.pages):
        names = [f"{number}-{i}.png" for i in range(rng.randrange(3, 12))]
        for name in names:
            with open(os.path.join(options.folder, name), "wb") as file:
                file.write(picture(rng))
        with open(os.path.join(options.folder, f"{number}.html"), "w", encoding="utf-8") as file:
            file.write(page(number, options.pages, names, rng))


if __name__ == "__main__":
    main()
