/** Where the service is, seen from a document that it served, below any root path. */

/** The service's address with a slash at its end. */
export function serviceAddress(documentAddress: string): string {
  const url = new URL(".", documentAddress);
  url.search = "";
  url.hash = "";
  return url.href;
}
