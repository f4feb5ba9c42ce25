// What the page knows.

export const store = {
  documents: { texts: [], map: [] },
  state: null,
  status: null,
};

export const names = () => store.state?.labels.map((label) => label.name) ?? [];
export const answers = () => store.state?.answers ?? null;
export const study = () => store.status?.study ?? null;
export const fresh = () => Boolean(study()?.complete) && study().version === store.state?.version;
export const nameOf = (column) => (column < 0 ? "none of these" : answers().labels[column].name);
