"""Facts in and tables out: every form of table, the columns of arguments and values, terms. No rules are known here."""
