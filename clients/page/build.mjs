/** Bundles the page into the folder from which the service serves it. */

import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { build } from "esbuild";

const HERE = new URL(".", import.meta.url).pathname;
const OUT = join(HERE, "../../apply_service/http/page/static");
const SWAGGER = join(HERE, "node_modules/swagger-ui-dist");

rmSync(OUT, { recursive: true, force: true });
mkdirSync(OUT, { recursive: true });
const { metafile } = await build({
  entryPoints: ["page.ts", "page.css", "docs.ts", "docs.css"].map((name) =>
    join(HERE, "src", name),
  ),
  outdir: OUT,
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022"],
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
});
for (const name of ["index.html", "docs.html", "icon.svg"]) {
  copyFileSync(join(HERE, "src", name), join(OUT, name));
}
copyFileSync(join(SWAGGER, "swagger-ui-bundle.js"), join(OUT, "swagger-ui.js"));
writeFileSync(join(OUT, "licences.txt"), licencesOf(bundledPackages()));

/** The packages whose code is in a bundle. */
function bundledPackages() {
  const names = Object.keys(metafile.inputs)
    .map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1])
    .filter((name) => name !== undefined);
  return [...new Set([...names, "swagger-ui-dist"])].sort();
}

function licencesOf(names) {
  return names
    .map((name) => {
      const folder = join(HERE, "node_modules", name);
      const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
      const texts = [
        "LICENSE",
        "LICENSE.txt",
        "LICENSE.md",
        "NOTICE",
        "swagger-ui-bundle.js.LICENSE.txt",
      ]
        .filter((file) => existsSync(join(folder, file)))
        .map((file) => readFileSync(join(folder, file), "utf8").trim());
      if (texts.length === 0) {
        throw new Error(`${name} has no licence text`);
      }
      return [`${name} ${version} (${license})`, ...texts].join("\n\n");
    })
    .join(`\n\n${"-".repeat(80)}\n\n`)
    .concat("\n");
}
