/** The edit that tests send; the model of their service writes MERGED. */

export const ORIGINAL =
  "import sys\n\n\ndef greet(name):\n    print(name)\n\n\ndef main():\n    greet(sys.argv[1])\n";

export const UPDATE =
  "# ... existing code ...\ndef greet(name, mark):\n    print(name + mark)\n" +
  "# ... existing code ...";

export const MERGED = ORIGINAL.replace("greet(name)", "greet(name, mark)").replace(
  "print(name)",
  "print(name + mark)",
);

/** Its old line does not stand in the file. */
export const LOST_DIFF = "@@ -1 +1 @@\n-nowhere\n+somewhere\n";

/** All that comes out of an async iterable. */
export async function listOf(items) {
  const list = [];
  for await (const item of items) {
    list.push(item);
  }
  return list;
}
