/** The store-wide revision counter (row 0) and, for every table, the last revision that touched it. */
export const counters = `
CREATE TABLE comity_counters (
  n INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  rev INTEGER NOT NULL
);
INSERT INTO comity_counters (n, name, rev) VALUES (0, '', 0);
`;
