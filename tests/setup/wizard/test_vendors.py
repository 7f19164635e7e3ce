"""What the wizard says of a vendor is what the daemon asks."""

from __future__ import annotations

import pytest

from fermix.providers.build import spec_of
from fermix.providers.settings import LOCAL
from fermix.setup.wizard.vendors import OTHER, VENDORS, Vendor


@pytest.mark.parametrize(
    "vendor", [each for each in VENDORS if each.name not in (LOCAL, OTHER)], ids=lambda vendor: vendor.name
)
def test_wizard_and_provider_name_one_address(vendor: Vendor) -> None:
    assert vendor.base_url == spec_of(vendor.name).base_url
