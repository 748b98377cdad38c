/** The types of "Shop", printed by `comity types`: print them again after a change of the configuration. */

/** For `createClient<Api>(...)` of `comity/client`. */
export interface Api {
  collections: {
    /** What products are sorted into. One that still has products cannot be deleted (409). */
    categories: {
      document: Category;
      create: CategoryCreate;
      patch: CategoryPatch;
      counts: 'productCount';
    };
    /** What the shop sells. */
    products: {
      document: Product;
      create: ProductCreate;
      patch: ProductPatch;
      references: { categoryId: 'categories' };
    };
    /** The shop’s journal. A draft belongs to its author; once published, anyone may read it. */
    articles: {
      document: Article;
      create: ArticleCreate;
      patch: ArticlePatch;
    };
    /** Private notes: only their author can see that they exist. */
    notes: { document: Note; create: NoteCreate; patch: NotePatch };
    /** Accounts. Administrators can read and change all of them, other callers only their own. */
    users: { document: User; create: UserCreate; patch: UserPatch };
  };
  events: {
    /** The last piece of a product is sold. */
    'stock.ran-out': { id: string; name: string; sku?: string };
  };
}

/** What products are sorted into. One that still has products cannot be deleted (409). */
export interface Category {
  id: string;
  name: string;
  createdAt: string;
  updatedAt: string;
}

export interface CategoryCreate {
  name: string;
}

export interface CategoryPatch {
  name?: string;
}

/** What the shop sells. */
export interface Product {
  id: string;
  name: string;
  price: number;
  categoryId: string;
  sku?: string;
  tags?: string[];
  stock?: number;
  createdAt: string;
  updatedAt: string;
}

export interface ProductCreate {
  name: string;
  price: number;
  categoryId: string;
  sku?: string;
  tags?: string[];
  stock?: number;
}

export interface ProductPatch {
  name?: string;
  price?: number;
  categoryId?: string;
  tags?: string[] | null;
  stock?: number | null;
}

/** The shop’s journal. A draft belongs to its author; once published, anyone may read it. */
export interface Article {
  id: string;
  title: string;
  body?: string;
  published?: boolean;
  createdAt: string;
  updatedAt: string;
  deletedAt?: string;
}

export interface ArticleCreate {
  title: string;
  body?: string;
  published?: boolean;
}

export interface ArticlePatch {
  title?: string;
  body?: string | null;
  published?: boolean | null;
}

/** Private notes: only their author can see that they exist. */
export interface Note {
  id: string;
  text: string;
  createdAt: string;
  updatedAt: string;
}

export interface NoteCreate {
  text: string;
}

export interface NotePatch {
  text?: string;
}

/** Accounts. Administrators can read and change all of them, other callers only their own. */
export interface User {
  id: string;
  email: string;
  name?: string;
  emailVerified?: boolean;
  roles?: string[];
  scopes?: ('read' | 'write' | 'webhooks' | 'tunnel' | 'admin')[];
  tenant?: string;
  disabled?: boolean;
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
}

export interface UserPatch {
  email?: string;
  name?: string | null;
  emailVerified?: boolean | null;
  roles?: string[] | null;
  scopes?: ('read' | 'write' | 'webhooks' | 'tunnel' | 'admin')[] | null;
  tenant?: string | null;
  disabled?: boolean | null;
}
