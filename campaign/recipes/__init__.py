"""A working call of every public callable: the values that its parameters have while one of them is odd.

VALUES   by the name of a parameter
SPECIAL  by callable and parameter, where the name alone does not say it
USES     what is done with an instance of a class once it is built
HELD     objects whose methods are called as well
RECORDS  public names that nobody calls, and why
"""

from campaign.recipes.held import HELD
from campaign.recipes.records import RECORDS
from campaign.recipes.special import SPECIAL
from campaign.recipes.uses import USES
from campaign.recipes.values import VALUES

__all__ = ["HELD", "RECORDS", "SPECIAL", "USES", "VALUES"]
