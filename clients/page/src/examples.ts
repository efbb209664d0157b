/** Edits to try, each for one thing that can happen. */

/** When the model is asked; `free` if it is not bound to the valid merges. */
export type Mode = "auto" | "always" | "free" | "never";

/** A file and an update of it. */
export interface Example {
  name: string;
  path: string;
  original: string;
  update: string;
  mode: Mode;
}

const GREET = `import sys


def greet(name):
    print("Hello " + name)


def main():
    greet(sys.argv[1])
`;

const STORES = `class Reader:
    def close(self):
        self.file = None


class Writer:
    def close(self):
        self.file = None
`;

const CART = `export interface Item {
  name: string;
  price: number;
}

export class Cart {
  private items: Item[] = [];

  add(item: Item): void {
    this.items.push(item);
  }

  total(): number {
    let sum = 0;
    for (const item of this.items) {
      sum += item.price;
    }
    return sum;
  }

  clear(): void {
    this.items = [];
  }
}
`;

export const EXAMPLES: readonly Example[] = [
  {
    name: "A clear edit",
    path: "greet.py",
    original: GREET,
    update:
      '# ... existing code ...\ndef greet(name, mark="!"):\n    print("Hello " + name + mark)\n# ... existing code ...\n',
    mode: "auto",
  },
  {
    name: "An edit in doubt",
    path: "stores.py",
    original: STORES,
    update: "# ...\n    def close(self):\n        log(self)\n        self.file = None\n# ...\n",
    mode: "auto",
  },
  {
    name: "With the model",
    path: "cart.ts",
    original: CART,
    update: `// ... existing code ...
  total(): number {
    let sum = 0;
    for (const item of this.items) {
      sum += item.price;
    }
    return Math.round(sum * 100) / 100;
  }
// ... existing code ...
`,
    mode: "free",
  },
  {
    name: "A new parameter",
    path: "cart.ts",
    original: CART,
    update: `// ... existing code ...
  total(discount = 0): number {
    let sum = 0;
    for (const item of this.items) {
      sum += item.price;
    }
    return sum * (1 - discount);
  }
// ... existing code ...
`,
    mode: "free",
  },
  {
    name: "Search and replace",
    path: "settings.json",
    original: '{\n  "host": "127.0.0.1",\n  "port": 8080,\n  "debug": true\n}\n',
    update:
      '<<<<<<< SEARCH\n  "debug": true\n=======\n  "debug": false,\n  "workers": 4\n>>>>>>> REPLACE\n',
    mode: "auto",
  },
  {
    name: "A refused edit",
    path: "greet.py",
    original: GREET,
    update:
      "<<<<<<< SEARCH\ndef farewell(name):\n=======\ndef farewell(name, mark):\n>>>>>>> REPLACE\n",
    mode: "auto",
  },
];
