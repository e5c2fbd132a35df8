"""The structure of a page of HTML."""

from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "link", "img", "input"}


class Outline(HTMLParser):
    """Open elements, tags, ids and links of a page, and the tags that are closed in the wrong order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open, self.tags, self.ids, self.uses, self.crossed = [], [], [], [], []
        self.feed(text)

    @property
    def faults(self) -> list[str]:
        """Elements that are not closed, or in the wrong order; ids that occur twice; links to no id."""
        repeated = [name for name in self.ids if self.ids.count(name) > 1]
        lost = [use for use in self.uses if use.startswith("#") and use[1:] not in self.ids]
        return [*self.open, *self.crossed, *repeated, *lost]

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append(tag)
        self.ids += [given["id"]] if "id" in given else []
        self.uses += [given["href"]] if "href" in given else []
        self.open += [] if tag in VOID else [tag]

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        if self.open.pop() != tag:
            self.crossed.append(tag)
