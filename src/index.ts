/** The public interface of the package `comity`, by name. Anything else is internal and may change at any time. */
export type { Static } from 'typebox';
export { type Acting, action } from './config/action.ts';
export { type ConfigurationDeclaration, type Configured, collection, defineConfig } from './config/define.ts';
export type { EventTypeDeclaration } from './config/event-types.ts';
export {
  type Handler,
  type Handling,
  type ReceivedMessage,
  ResourceRefused,
  UnprocessableMessage,
} from './config/handler.ts';
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
export type { SettingName, SettingOverrides, Settings } from './config/settings.ts';
export type { EventHandling, SubscribedEvent, SubscriberDeclaration } from './config/subscribers.ts';
export type { TrustedIssuerDeclaration } from './config/trusted-issuers.ts';
export {
  type Comity,
  type CreateOptions,
  createComity,
  type PrincipalDeclaration,
  type ResourcesAs,
} from './create-comity.ts';
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
export {
  type BodyFormat,
  type CollectionDeclaration,
  type ComputedField,
  computed,
  type Deprecation,
} from './model/collection.ts';
export type { Scalar } from './model/field.ts';
export {
  type ActionDeclaration,
  type ActionMethod,
  type Output,
  output,
  type Pieces,
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
export type { AfterRead, BeforeWrite, Hooks, Write } from './model/logic/hooks.ts';
export type {
  Caller,
  Emit,
  Logic,
  Mail,
  MailAddress,
  MailAttachment,
  OutgoingMail,
  Refusal,
  Refuse,
} from './model/logic/logic.ts';
export { Type } from './model/logic/new-fields.ts';
export { type Upload, type UploadRule, upload } from './model/logic/upload.ts';
export type { StampDeclaration, StampValue } from './model/stamp.ts';
