/** The API's description, to read and to try, from the document at `/schema`. */

import { serviceAddress } from "./address";
import { byId, element } from "./elements";
import { KeyDialog } from "./key_dialog";
import { readKey } from "./key_store";
import { problemView } from "./problem_view";
import { ProblemError, Service } from "./service";
import { keepAccessible } from "./swagger_repairs";
import { startTheme } from "./theme";

interface SwaggerRequest {
  url: string;
  headers: Record<string, string>;
}

declare const SwaggerUIBundle: (options: Record<string, unknown>) => unknown;

startTheme();
keepAccessible(byId("api"));
const address = serviceAddress(location.href);
const service = new Service(address, readKey);
let isShown = false;
const keys = new KeyDialog(() => {
  if (!isShown) {
    void show(); // once it is, requests take the key that there is
  }
});
void show();

async function show(): Promise<void> {
  const place = byId("api");
  const state = byId("state");
  try {
    const document_ = await keys.withKey(() => service.description());
    place.replaceChildren();
    SwaggerUIBundle({
      // A proxy may have taken a root path away: requests go where the page came from.
      spec: { ...document_, servers: [{ url: address.replace(/\/$/, "") }] },
      domNode: place,
      deepLinking: false,
      defaultModelsExpandDepth: 0,
      docExpansion: "list",
      syntaxHighlight: false,
      validatorUrl: null,
      requestInterceptor: withKey,
      // The command that is shown goes without the key.
      showMutatedRequest: false,
    });
    state.textContent = "";
    isShown = true;
  } catch (error) {
    state.textContent =
      error instanceof ProblemError ? error.problem.title : "The page made an error";
    place.replaceChildren(element("h2", {}, "No description"), problemView(error));
  }
}

function withKey(request: SwaggerRequest): SwaggerRequest {
  const key = readKey();
  return key === null
    ? request
    : { ...request, headers: { ...request.headers, Authorization: `Bearer ${key}` } };
}
