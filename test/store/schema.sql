-- user_version 2
CREATE TABLE "categories" (
  id TEXT PRIMARY KEY NOT NULL,
  rev INTEGER NOT NULL,
  owner TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  deleted_at INTEGER,
  doc TEXT NOT NULL
);
CREATE INDEX "categories.index[""id""]" ON "categories"(id) WHERE deleted_at IS NULL;
CREATE INDEX "categories.index[""parentId""]" ON "categories"(CASE json_type(doc,'$."parentId"') WHEN 'text' THEN json_extract(doc,'$."parentId"') END, id) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX "categories.unique[""name""]" ON "categories"(CASE json_type(doc,'$."name"') WHEN 'text' THEN json_extract(doc,'$."name"') END) WHERE deleted_at IS NULL;
CREATE TABLE comity_counters (
  n INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  rev INTEGER NOT NULL
);
CREATE TABLE comity_raises (
  before INTEGER PRIMARY KEY,
  after INTEGER NOT NULL,
  made_at INTEGER NOT NULL,
  server TEXT NOT NULL DEFAULT ''
);
CREATE TABLE "events" (
  id TEXT PRIMARY KEY NOT NULL,
  rev INTEGER NOT NULL,
  owner TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  deleted_at INTEGER,
  type TEXT NOT NULL,
  collection TEXT NOT NULL,
  document TEXT,
  former TEXT,
  doc TEXT NOT NULL
);
CREATE INDEX "events.index[""collection"",""document"",""rev""]" ON "events"(collection, document, rev, id) WHERE deleted_at IS NULL;
CREATE INDEX "events.index[""rev""]" ON "events"(rev, id) WHERE deleted_at IS NULL;
CREATE TABLE "things" (
  id TEXT PRIMARY KEY NOT NULL,
  rev INTEGER NOT NULL,
  owner TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  deleted_at INTEGER,
  doc TEXT NOT NULL,
  search TEXT
);
CREATE INDEX "things.index[""categoryId"",""price""]" ON "things"(CASE json_type(doc,'$."categoryId"') WHEN 'text' THEN json_extract(doc,'$."categoryId"') END, CASE WHEN json_type(doc,'$."price"') IN ('integer','real') THEN CAST(json_extract(doc,'$."price"') AS REAL) END, id) WHERE deleted_at IS NULL;
CREATE INDEX "things.index[""createdAt""]" ON "things"(created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX "things.index[""live""]" ON "things"(CASE json_type(doc,'$."live"') WHEN 'true' THEN 1 WHEN 'false' THEN 0 END, id) WHERE deleted_at IS NULL;
CREATE INDEX "things.index[""name"",""stock""]" ON "things"(CASE json_type(doc,'$."name"') WHEN 'text' THEN json_extract(doc,'$."name"') END, CASE WHEN json_type(doc,'$."stock"') IN ('integer','real') THEN CAST(json_extract(doc,'$."stock"') AS REAL) END, id) WHERE deleted_at IS NULL;
CREATE INDEX "things.index[""price""]" ON "things"(CASE WHEN json_type(doc,'$."price"') IN ('integer','real') THEN CAST(json_extract(doc,'$."price"') AS REAL) END, id) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX "things.unique[""sku""]" ON "things"(CASE json_type(doc,'$."sku"') WHEN 'text' THEN json_extract(doc,'$."sku"') END) WHERE deleted_at IS NULL;
