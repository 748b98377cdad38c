/** Types of what the API serves, from its OpenAPI document. Rendered by scripts/docs/api-types.ts; `npm run docs` writes it. */

export type Backup = {
  readonly id: string;
  readonly file: string;
  readonly bytes: number;
  readonly createdAt: string;
};

export type Hold = {
  readonly held: boolean;
  readonly since: string | null;
  readonly from: string | null;
};

export type Me = {
  readonly id: string;
  readonly kind: "user" | "key" | "administrator" | "external";
  readonly email?: string;
  readonly name?: string;
  readonly roles: readonly (string)[];
  readonly scopes: readonly (string)[];
  readonly tenant: string | null;
  readonly authenticatedBy: "key" | "token" | "issuer" | "password" | "session-cookie";
};

export type Passkeys = {
  readonly items: readonly ({
    readonly id: string;
    readonly name: string;
    readonly transports: readonly (string)[];
    readonly backedUp: boolean;
    readonly createdAt: string;
    readonly lastUsedAt: string | null;
  })[];
};

export type Program = {
  readonly version: string;
  readonly node: string;
  readonly startedAt: string;
  readonly process: string;
  readonly store: {
    readonly engine: "sqlite" | "postgresql";
    readonly bytes: number | null;
  };
  readonly differences: readonly ({
    readonly what: string;
    readonly noticedAt: string;
  })[];
};

export type SecondFactor = {
  readonly required: boolean;
  readonly enrolled: boolean;
  readonly totp: {
    readonly addedAt?: string;
  } | null;
  readonly passkeys: number;
  readonly recoveryCodesLeft: number;
};

export type Session = {
  readonly id: string;
  readonly createdAt: string;
  readonly seenAt: string;
  readonly endsAt: string;
  readonly cookie: boolean;
  readonly current: boolean;
};

export type Setting = {
  readonly name: string;
  readonly variable: string;
  readonly section: string;
  readonly meaning: string;
  readonly unit: string | null;
  readonly value: string | number | boolean | null;
  readonly default: string | number | boolean | null;
  readonly source: "default" | "configuration" | "environment" | "command line";
  readonly secret: boolean;
};

export type StoreReport = {
  readonly engine: "sqlite" | "postgresql";
  readonly readAt: string;
  readonly bytes: number;
  readonly schemaVersion: number;
  readonly collections: readonly ({
    readonly name: string;
    readonly documents: number;
    readonly isEstimate: boolean;
    readonly bytes: number | null;
    readonly indexes: readonly ({
      readonly kind: "index" | "unique" | "search";
      readonly fields: readonly (string)[];
      readonly stands: boolean;
    })[];
  })[];
  readonly migrations: readonly ({
    readonly id: string;
    readonly collection: string;
    readonly state: "made" | "running" | "pending";
    readonly at: string | null;
    readonly documents: number | null;
    readonly changed: number | null;
    readonly program: string | null;
  })[];
};

export type TotpEnrolment = {
  readonly enrolment: string;
  readonly expiresIn: number;
  readonly secret: string;
  readonly uri: string;
};

export type Version = {
  readonly id: string;
  readonly change: "created" | "updated" | "deleted";
  readonly at: string;
  readonly actor?: {
    readonly kind: "user" | "key" | "administrator-key" | "issuer" | "portal" | "anonymous" | "handler" | "subscriber" | "job" | "system";
    readonly id: string | null;
    readonly keyId?: string;
  };
  readonly requestId?: string;
  readonly changes: { readonly [name: string]: {
    readonly before?: unknown;
    readonly after?: unknown;
  } };
};
