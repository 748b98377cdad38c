/** The types of "Help desk", printed by `comity types`: print them again after a change of the configuration. */

/** For `createClient<Api>(...)` of `comity/client`. */
export interface Api {
  collections: {
    /** Customers. The tenant of an account is the id of its organisation. */
    organisations: {
      document: Organisation;
      create: OrganisationCreate;
      patch: OrganisationPatch;
      counts: 'ticketCount' | 'userCount';
    };
    /** Questions. A customer sees those of the own organisation, an agent all of them. */
    tickets: {
      document: Ticket;
      create: TicketCreate;
      patch: TicketPatch;
      references: {
        organisationId: 'organisations';
        assigneeId: 'users';
        mergedInto: 'tickets';
      };
      counts: 'mergedCount' | 'commentCount';
      actions: {
        /** Merge a ticket into another one */
        merge: {
          on: 'member';
          route: 'POST /merge';
          input: { into: string };
          output: { moved: number };
          codes:
            | 'same_ticket'
            | 'ticket_missing'
            | 'ticket_closed'
            | 'another_organisation'
            | 'too_many_comments';
        };
      };
    };
    /** What was said about a ticket. Those who see the ticket may comment on it. */
    comments: {
      document: Comment;
      create: CommentCreate;
      patch: CommentPatch;
      references: { ticketId: 'tickets' };
    };
    /** Accounts. Administrators can read and change all of them, other callers their own and those that the access rules name. */
    users: {
      document: User;
      create: UserCreate;
      patch: UserPatch;
      references: { organisationId: 'organisations' };
      counts: 'ticketCount';
    };
  };
  actions: {
    /** The page of the desk */
    desk: { route: 'GET /desk'; output: string };
    /** The client for the page */
    client: {
      route: 'GET /desk/{file}';
      output: string;
      codes: 'no_such_script';
    };
  };
  codes: 'not_an_agent';
}

/** Customers. The tenant of an account is the id of its organisation. */
export interface Organisation {
  id: string;
  name: string;
  createdAt: string;
  updatedAt: string;
}

export interface OrganisationCreate {
  name: string;
}

export interface OrganisationPatch {
  name?: string;
}

/** Questions. A customer sees those of the own organisation, an agent all of them. */
export interface Ticket {
  id: string;
  title: string;
  body?: string;
  status: 'open' | 'solved' | 'closed';
  priority: 'normal' | 'urgent';
  contact: string;
  attachments?: FileValue[];
  organisationId?: string;
  assigneeId?: string;
  dueAt?: string;
  solvedAt?: string;
  mergedInto?: string;
  askedBy?: string;
  changedBy?: string;
  createdAt: string;
  updatedAt: string;
}

export interface TicketCreate {
  title: string;
  body?: string;
  status?: 'open' | 'solved' | 'closed';
  priority?: 'normal' | 'urgent';
  contact: string;
  attachments?: FileReference[];
  organisationId?: string;
  assigneeId?: string;
  dueAt?: string;
  solvedAt?: string;
  mergedInto?: string;
}

export interface TicketPatch {
  title?: string;
  body?: string | null;
  status?: 'open' | 'solved' | 'closed' | null;
  priority?: 'normal' | 'urgent' | null;
  contact?: string;
  attachments?: FileReference[] | null;
  assigneeId?: string | null;
  dueAt?: string | null;
  solvedAt?: string | null;
  mergedInto?: string | null;
}

/** What was said about a ticket. Those who see the ticket may comment on it. */
export interface Comment {
  id: string;
  ticketId: string;
  text: string;
  byAgent?: boolean;
  authorId?: string;
  createdAt: string;
  updatedAt: string;
}

export interface CommentCreate {
  ticketId: string;
  text: string;
  byAgent?: boolean;
}

export interface CommentPatch {
  ticketId?: string;
  text?: string;
  byAgent?: boolean | null;
}

/** Accounts. Administrators can read and change all of them, other callers their own and those that the access rules name. */
export interface User {
  id: string;
  email: string;
  name?: string;
  emailVerified?: boolean;
  roles?: string[];
  scopes?: ('read' | 'write' | 'webhooks' | 'tunnel' | 'admin')[];
  tenant?: string;
  disabled?: boolean;
  organisationId?: string;
  role?: 'member' | 'lead';
  phone?: string;
  createdAt: string;
  updatedAt: string;
}

export interface UserCreate {
  email: string;
  name?: string;
  emailVerified?: boolean;
  roles?: string[];
  scopes?: ('read' | 'write' | 'webhooks' | 'tunnel' | 'admin')[];
  tenant?: string;
  disabled?: boolean;
  organisationId?: string;
  role?: 'member' | 'lead';
  phone?: string;
}

export interface UserPatch {
  email?: string;
  name?: string | null;
  emailVerified?: boolean | null;
  roles?: string[] | null;
  scopes?: ('read' | 'write' | 'webhooks' | 'tunnel' | 'admin')[] | null;
  tenant?: string | null;
  disabled?: boolean | null;
  organisationId?: string | null;
  role?: 'member' | 'lead' | null;
  phone?: string | null;
}

/** A file of a document. The octets are at `url`. */
export interface FileValue {
  id: string;
  name: string;
  type: string;
  bytes: number;
  digest: string;
  url: string;
  previews?: { [name: string]: string };
}

/** A file in a write: one that the document has, or a finished upload. */
export type FileReference = { id: string } | { upload: string };
