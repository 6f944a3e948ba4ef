"""A working call of every public callable: the values that its parameters have while one of them is odd.

VALUES   by the name of a parameter
SPECIAL  by callable and parameter, where the name alone does not say it
USES     what is done with an instance of a class once it is built
HELD     objects whose methods are called, where one that is built as its recipe says will not do
RECORDS  public names that nobody calls, and why
OF_WORLD what methods of a world are given, by parameter
INNER    methods that the library asks of objects, and callers do not
"""

from campaign.recipes.held import HELD
from campaign.recipes.records import INNER, RECORDS
from campaign.recipes.special import SPECIAL
from campaign.recipes.uses import USES
from campaign.recipes.values import VALUES
from campaign.recipes.worlds import OF_WORLD

__all__ = ["HELD", "INNER", "OF_WORLD", "RECORDS", "SPECIAL", "USES", "VALUES"]
