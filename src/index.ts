/**
 * The public interface of the package `comity`, by name. Anything else is internal and may change at any time. The program is loaded when
 * `createComity` is called: a thread of handlers, which imports the configuration and with it this file, needs none of it.
 */
import type { Comity } from './comity.ts';
import type { ConfigurationDeclaration, Configured, ResourcesIn } from './config/define.ts';
import { refuseOldNode } from './package-version.ts';

export type { Static } from 'typebox';
export type { Comity, PrincipalDeclaration, ResourcesAs } from './comity.ts';
export {
  type Acting,
  action,
  type ConfigurationDeclaration,
  type Configured,
  collection,
  defineConfig,
} from './config/define.ts';
export type { EventTypeDeclaration } from './config/event-types.ts';
export type { EventHandling, SubscribedEvent, SubscriberDeclaration } from './config/inspect-functions.ts';
export { ConfigurationError } from './config/inspection.ts';
export type { JobDeclaration, JobRun } from './config/jobs.ts';
export type { MailDeclaration } from './config/mail-templates.ts';
export type {
  CollectionRemoval,
  DocumentMigration,
  MigrationDeclaration,
  OldDocument,
} from './config/migrations.ts';
export type { ForwardDeclaration, SenderDeclaration } from './config/senders.ts';
export {
  type Handler,
  type Handling,
  type ReceivedMessage,
  ResourceRefused,
  type UnjudgedMessage,
  UnprocessableMessage,
  type Verify,
} from './config/senders.ts';
export type { SettingName, SettingOverrides, Settings } from './config/settings.ts';
export type { TrustedIssuerDeclaration } from './config/trusted-issuers.ts';
export type { Access, Action, Rule } from './model/access.ts';
export type { Condition } from './model/access-condition.ts';
export {
  allow,
  type FunctionRule,
  type ListExpression,
  type ResourceExpressions,
  type RulePrincipal,
  type ScalarExpression,
} from './model/access-function.ts';
export type { Actor, ActorKind } from './model/actor.ts';
export type { StampDeclaration, StampValue } from './model/collection.ts';
export {
  type BodyFormat,
  type CollectionDeclaration,
  type ComputedField,
  computed,
  type Deprecation,
} from './model/collection.ts';
export type { Scalar } from './model/field.ts';
export {
  File,
  type FileReference,
  type FileRule,
  type FileValue,
  MiB,
  type OpenFile,
  type PreviewRule,
} from './model/file.ts';
export {
  type ActionDeclaration,
  type ActionMethod,
  type Output,
  output,
  type Pieces,
  type Upload,
  type UploadRule,
  upload,
} from './model/logic/actions.ts';
export type {
  Account,
  CollectionCalls,
  Document,
  DocumentFilter,
  DocumentOf,
  DocumentQuery,
  DocumentSelection,
  Resources,
  ResourcesOf,
  Schemas,
} from './model/logic/collection-calls.ts';
export { Type } from './model/logic/collection-calls.ts';
export type {
  AfterRead,
  BeforeWrite,
  Caller,
  Emit,
  Hooks,
  Logic,
  Mail,
  MailAddress,
  MailAttachment,
  OutgoingMail,
  Refusal,
  Refuse,
  Write,
} from './model/logic/logic.ts';

// What this file imports is read by an old Node too: it names no export of Node that is younger than Node 20.
refuseOldNode();

export type CreateOptions = {
  /**
   * The module whose default export is the declaration, such as `new URL('./comity.config.ts', import.meta.url)`, which the threads of
   * handlers import. Required if a sender has a handler. Paths in the declaration begin in its folder, without it in the working directory.
   */
  readonly module?: URL;
};

/**
 * Opens the store and creates the handler. Settings come from the declaration and the given environment; `host` and `port` are those of the
 * surrounding server.
 * @throws ConfigurationError with every mistake in the declaration, the settings or the secrets of senders
 */
export async function createComity<C>(
  declaration: ConfigurationDeclaration & Partial<Pick<Configured<C>, 'collections'>>,
  environment: Readonly<Record<string, string | undefined>> = {},
  { module }: CreateOptions = {},
): Promise<Comity<ResourcesIn<C>>> {
  const { embed } = await import('./embed.ts');
  return embed<ResourcesIn<C>>(declaration, environment, { module: module?.href });
}
