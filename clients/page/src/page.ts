/** The page: binds its views to the service that served it. */

import { serviceAddress } from "./address";
import { showConnect } from "./connect";
import { byId } from "./elements";
import { isKeyNeeded, KeyDialog } from "./key_dialog";
import { readKey } from "./key_store";
import { Live } from "./live";
import { Playground } from "./playground";
import { ProblemError, Service } from "./service";
import { startTabs } from "./tabs";
import { startTheme } from "./theme";

startTheme();
const service = new Service(serviceAddress(location.href), readKey);
const keys = new KeyDialog(() => {
  void showState();
  live.retry();
});
new Playground(byId("playground"), service, keys);
const live = new Live(byId("live"), service, keys);
startTabs(document.querySelector('[role="tablist"]') as HTMLElement, (panel) =>
  live.setShown(panel === "live"),
);
void showState();

/** Say which model is served, or what is missing; the model list needs a key where edits do. */
async function showState(): Promise<void> {
  const state = byId("state");
  state.textContent = "Asking the server…";
  let needsKey = readKey() !== null;
  try {
    const model = await keys.withKey(() => service.model());
    needsKey = readKey() !== null;
    state.textContent = model === null ? "Working without a model" : `Model: ${model}`;
  } catch (error) {
    needsKey ||= isKeyNeeded(error);
    state.textContent =
      error instanceof ProblemError ? error.problem.title : "The page made an error";
  }
  showConnect(byId("connect"), service.address, { needsKey });
}
